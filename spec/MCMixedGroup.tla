---------------------------- MODULE MCMixedGroup ----------------------------
(***************************************************************************)
(* Bounds of the closed mixed group. Each is a named operator that a       *)
(* configuration assigns to a constant; the comment says what the bound    *)
(* cuts off. Bounds are constants of a run. There is no VIEW, no SYMMETRY  *)
(* and no state constraint, so TLC sees the whole graph.                   *)
(***************************************************************************)
EXTENDS MixedProperties

(***************************************************************************)
(* Clients. Two are the least that can speak two protocols.                *)
(***************************************************************************)
OneClient    == {"c1"}
TwoClients   == {"c1", "c2"}
ThreeClients == {"c1", "c2", "c3"}

(***************************************************************************)
(* Member ids. Risk: runs with more restarts than ids are missing.         *)
(***************************************************************************)
TwoIds   == <<"m1", "m2">>
ThreeIds == <<"m1", "m2", "m3">>
FourIds  == <<"m1", "m2", "m3", "m4">>
FiveIds  == <<"m1", "m2", "m3", "m4", "m5">>

OnePartition  == <<"p1">>
TwoPartitions == <<"p1", "p2">>

(***************************************************************************)
(* Which clients are static.                                               *)
(***************************************************************************)
AllDynamic   == [c \in Clients |-> ""]
FirstStatic  == [c \in Clients |-> IF c = "c1" THEN "i1" ELSE ""]
SameInstance == [c \in Clients |-> "i1"]  \* processes that share one instance id

(***************************************************************************)
(* Which protocols the processes of a client speak. Risk with one protocol *)
(* each: no client changes. AllRoll has no such risk, but its graph is     *)
(* large.                                                                  *)
(***************************************************************************)
AnyProtocol == {"classic", "consumer"}
OneOfEach   == [c \in Clients |-> IF c = "c1" THEN {"classic"} ELSE {"consumer"}]
FirstRolls  == [c \in Clients |-> IF c = "c1" THEN AnyProtocol ELSE {"classic"}]
AllClassic  == [c \in Clients |-> {"classic"}]
LastIsConsumer == [c \in Clients |-> IF c = "c3" THEN {"consumer"} ELSE {"classic"}]
AllRoll     == [c \in Clients |-> AnyProtocol]

(***************************************************************************)
(* The faults that the environment may cause. Risk of a short list: none   *)
(* of the other faults combines with those listed.                         *)
(***************************************************************************)
StartsOnly == {"ClientStarts"}

StartsAndCommits == StartsOnly \cup {"ClientCommits"}

ClientFaults == {"ClientStarts", "ClientCrashes", "ClientLeaves", "ClientGivesUp"}

TimerFaults == {"JoinTimerFiresEarly", "SyncTimerFiresEarly", "SessionTimerFiresEarly",
                "RebalanceTimerFiresEarly", "MemberJoinTimerFiresEarly",
                "MemberSyncTimerFiresEarly"}

AllButDuplicates ==
  ClientFaults \cup TimerFaults \cup {"RequestLost", "ReplyLost", "CoordinatorFailsOver"}

\* Faults of one kind, for configurations about that kind.
Leaves   == {"ClientStarts", "ClientLeaves"}
LeavesAndCommits == Leaves \cup {"ClientCommits"}
Crashes  == {"ClientStarts", "ClientCrashes"}
Endings  == {"ClientStarts", "ClientLeaves", "ClientCrashes"}
Losses   == {"ClientStarts", "RequestLost", "ReplyLost"}
Copies   == {"ClientStarts", "RequestDuplicated"}
Stalls   == {"ClientStarts"} \cup TimerFaults
FailOvers == {"ClientStarts", "CoordinatorFailsOver"}
CopiesAndCrashes == Copies \cup Crashes
CopiesAndSessions == Copies \cup {"SessionTimerFiresEarly"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" about something that must be reachable, so *)
(* its configuration must fail. They show that the properties do not hold  *)
(* merely because nothing happens.                                         *)
(***************************************************************************)

\* Members of both protocols own partitions at the same time (X-ROLL-02).
NoGroupIsEverMixed ==
  ~ \E c, d \in Clients : /\ RunsClassic(c) /\ RunsConsumer(d)
                          /\ InStep(c) /\ InStep(d)
                          /\ Owned(c) # {} /\ Owned(d) # {}

\* A classic member of a consumer group has to revoke (X-JOIN-17).
NoClassicMemberEverHasToRevoke ==
  \A m \in DOMAIN group.subscriptions : Member(m).state # "UNREVOKED"

\* A group is downgraded (X-DOWN-01).
NoGroupIsEverDowngraded == [][~IsDowngrade]_vars
=============================================================================
