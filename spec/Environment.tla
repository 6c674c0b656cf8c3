----------------------------- MODULE Environment ----------------------------
(***************************************************************************)
(* The environment that all closed systems have in common: messages are    *)
(* lost or copied, a client stops waiting, a timer fires early, a process  *)
(* crashes, the coordinator moves, an application commits. A system        *)
(* extends this module. Its actions add what they change beside messages   *)
(* and budgets, and what they leave as it is.                              *)
(*                                                                         *)
(* Budgets limit the faults of a run. A kind of fault may have its own     *)
(* budget; all others share one. So a run may be slow and lossy, and       *)
(* "slow" takes nothing from "lossy".                                      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, Network

CONSTANTS
  Allowed,  \* names of the environment actions that may happen
  Faults,   \* how many faults a run may have, of the kinds that share a budget
  Budgets   \* kind -> how many faults of it a run may have, for kinds with their own budget

(***************************************************************************)
(* The kinds of fault. No budget limits ordinary actions.                  *)
(***************************************************************************)
Kinds == {"losses", "copies", "delays", "crashes", "departures", "changes",
          "failedWrites", "failOvers"}

KindOf(name) ==
  CASE name \in {"RequestLost", "ReplyLost"} -> "losses"
    [] name = "RequestDuplicated" -> "copies"
    [] name \in {"ClientGivesUp", "MemberGivesUp", "JoinTimerFiresEarly",
                 "SyncTimerFiresEarly", "SessionTimerFiresEarly",
                 "RebalanceTimerFiresEarly", "MemberJoinTimerFiresEarly",
                 "MemberSyncTimerFiresEarly"} -> "delays"
    [] name \in {"ClientCrashes", "MemberRestarts"} -> "crashes"
    [] name \in {"ClientLeaves", "ClientLeavesPermanently",
                 "OperatorRemovesMember"} -> "departures"
    [] name \in {"ClientRequestsRejoin", "ClientChangesInstance",
                 "TopicGrows"} -> "changes"
    [] name \in {"AppendFails", "LeaveAppendFails"} -> "failedWrites"
    [] name = "CoordinatorFailsOver" -> "failOvers"
    [] name \in {"ClientStarts", "ClientCommits", "GroupDecides", "TransactionTimesOut",
                 "OffsetIsDeleted", "OffsetExpires"} -> "ordinary"
    [] OTHER -> "unknown"

ASSUME \A name \in Allowed : KindOf(name) # "unknown"
ASSUME Faults \in Nat
ASSUME DOMAIN Budgets \subseteq Kinds /\ \A kind \in DOMAIN Budgets : Budgets[kind] \in Nat

\* Values for Budgets: all kinds share Faults, or one client may be slow and one
\* message lost.
Shared == [kind \in {} |-> 0]
OneDelayAndOneLoss == [delays |-> 1, losses |-> 1]

-----------------------------------------------------------------------------
VARIABLE requests    \* requests on their way to the coordinator
VARIABLE replies     \* answers on their way to clients

VARIABLE faultsLeft  \* what is left of each budget; "any" is the shared one
AllFaultsLeft ==
  [budget \in DOMAIN Budgets \cup {"any"} |->
     IF budget = "any" THEN Faults ELSE Budgets[budget]]
TypeFaultsLeft ==
  /\ DOMAIN faultsLeft = DOMAIN AllFaultsLeft
  /\ \A budget \in DOMAIN faultsLeft : faultsLeft[budget] \in 0..AllFaultsLeft[budget]

net == <<requests, replies>>

\* The fault of this name happens; its budget has one less.
Fault(name) ==
  LET budget == IF KindOf(name) \in DOMAIN Budgets THEN KindOf(name) ELSE "any"
  IN /\ name \in Allowed
     /\ faultsLeft[budget] > 0
     /\ faultsLeft' = [faultsLeft EXCEPT ![budget] = @ - 1]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Messages.                                                               *)
(***************************************************************************)

\* The network loses a request whose sender still waits for the answer.
LoseRequest ==
  /\ Fault("RequestLost")
  /\ \E r \in {q \in requests : q.awaited} : requests' = requests \ {r}
  /\ UNCHANGED replies

\* The network will deliver a request a second time.
CopyRequest ==
  /\ Fault("RequestDuplicated")
  /\ \E r \in {q \in requests : q.awaited} :
       requests' = requests \cup {Duplicate(r)}
  /\ UNCHANGED replies

\* The network loses a reply.
LoseReply ==
  /\ Fault("ReplyLost")
  /\ \E y \in replies : replies' = replies \ {y}
  /\ UNCHANGED requests

\* c no longer waits for an answer; more is what it sends last.
StopListening(c, more) ==
  /\ requests' = GiveUpRequests(requests, c) \cup more
  /\ replies' = GiveUpReplies(replies, c)

\* The request of c, or an answer to it, is in flight.
IsInFlight(c) ==
  \/ \E r \in requests : r.from = c /\ r.awaited
  \/ \E y \in replies : y.to = c

-----------------------------------------------------------------------------
(***************************************************************************)
(* Time and applications.                                                  *)
(***************************************************************************)

\* A timer that is set fires, although it is not due: a live client is still awaited.
FiresEarly(name, isSet, isDue) == Fault(name) /\ isSet /\ ~isDue

\* An application commits one of these; the coordinator accepts the commit or not.
\* Offsets specifies what happens to the offset, so nothing changes here.
Commits(these, IsAccepted(_), accepted) ==
  /\ "ClientCommits" \in Allowed
  /\ \E each \in these : IsAccepted(each) = accepted
=============================================================================
