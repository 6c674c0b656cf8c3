----------------------------- MODULE MCOffsets ------------------------------
(***************************************************************************)
(* Bounds of the offsets, each with what it cuts off; and witnesses.       *)
(***************************************************************************)
EXTENDS OffsetProperties

(***************************************************************************)
(* Members. Two are the least for one to follow the other.                 *)
(***************************************************************************)
TwoHolders == {"h1", "h2"}
OneHolder  == {"h1"}
First      == {"h1"}
Second     == {"h2"}
NoHolder     == {}

(***************************************************************************)
(* Partitions. Risk of one: a transaction over two of them.                *)
(***************************************************************************)
OnePart  == {"p1"}
TwoParts == {"p1", "p2"}

(***************************************************************************)
(* Decisions. With one partition: one member has it, the other, or none.   *)
(***************************************************************************)
OneOwner == {[h1 |-> {"p1"}, h2 |-> {}], [h1 |-> {}, h2 |-> {"p1"}]}
OneOwnerOrNone == OneOwner \cup {[h1 |-> {}, h2 |-> {}]}
Alone    == {[h1 |-> {"p1"}]}
Spread   == {[h1 |-> {"p1", "p2"}, h2 |-> {}], [h1 |-> {"p1"}, h2 |-> {"p2"}]}

(***************************************************************************)
(* The faults that the environment may cause.                              *)
(***************************************************************************)
DecisionsOnly == {"GroupDecides"}

MemberFaults == {"MemberGivesUp", "MemberRestarts"}

OffsetFaults == {"OffsetIsDeleted", "OffsetExpires"}

DecisionsAndGiveUps == DecisionsOnly \cup {"MemberGivesUp"}

DecisionsAndRestarts == DecisionsOnly \cup {"MemberRestarts"}

DecisionsAndFailOvers == DecisionsOnly \cup {"CoordinatorFailsOver"}

DecisionsAndTimeOuts == DecisionsOnly \cup {"TransactionTimesOut"}

AllFaults == DecisionsOnly \cup MemberFaults \cup OffsetFaults \cup
  {"CoordinatorFailsOver", "TransactionTimesOut"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" about something that must be reachable, so *)
(* its configuration must fail.                                            *)
(***************************************************************************)

\* An owner continues where another one has stopped.
NoCommittedOffsetIsEverFetched == \A y \in replies : y.api = "Fetch" => y.entry.offset = 0

\* A fetch waits for a transaction to end.
NoFetchEverFindsAPendingOffset ==
  \A r \in requests : r.api = "Fetch" => ~IsPending(Newest[r.part])

\* A commit is refused, since its member is out of date.
NoCommitIsEverRejected ==
  \A y \in replies : y.api = "Commit" => y.error # "STALE_MEMBER_EPOCH"
=============================================================================
