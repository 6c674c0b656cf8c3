--------------------------- MODULE MCClassicGroup ---------------------------
(***************************************************************************)
(* Bounds of the closed classic group. Each is a named operator that a     *)
(* configuration assigns to a constant; the comment says what the bound    *)
(* cuts off. Bounds are constants of a run. There is no VIEW, no SYMMETRY  *)
(* and no state constraint, so TLC sees the whole graph.                   *)
(***************************************************************************)
EXTENDS ClassicProperties

(***************************************************************************)
(* Clients. Two are the least that can disagree. Risk: a fault that needs  *)
(* a leader and two followers; ThreeClients has that, with fewer faults.   *)
(***************************************************************************)
TwoClients   == {"c1", "c2"}
ThreeClients == {"c1", "c2", "c3"}

(***************************************************************************)
(* Member ids. A JoinGroup that needs one more than there are stays in     *)
(* flight for ever. Risk: runs with more restarts than ids are cut there;  *)
(* EveryJoinFindsAnId shows whether a configuration has such runs.         *)
(***************************************************************************)
TwoIds   == <<"m1", "m2">>
ThreeIds == <<"m1", "m2", "m3">>
FourIds  == <<"m1", "m2", "m3", "m4">>
FiveIds  == <<"m1", "m2", "m3", "m4", "m5">>
SixIds   == <<"m1", "m2", "m3", "m4", "m5", "m6">>

EveryJoinFindsAnId ==
  \A r \in requests :
    r.api = "JoinGroup" /\ NeedsId(group, r, InstanceOf[r.from]) =>
      idsUsed < Len(MemberIds)

(***************************************************************************)
(* Partitions. Risk: with as many partitions as clients no client owns two *)
(* after a rebalance, so giving up some of several partitions shows only   *)
(* at joins.                                                               *)
(***************************************************************************)
OnePartition    == <<"p1">>
TwoPartitions   == <<"p1", "p2">>
ThreePartitions == <<"p1", "p2", "p3">>

(***************************************************************************)
(* Which clients are static.                                               *)
(***************************************************************************)
AllDynamic   == [c \in Clients |-> ""]
FirstStatic  == [c \in Clients |-> IF c = "c1" THEN "i1" ELSE ""]
SameInstance == [c \in Clients |-> "i1"]  \* two processes, one instance id
LastDynamic  == [c \in Clients |-> IF c = "c3" THEN "" ELSE "i1"]

(***************************************************************************)
(* The faults that the environment may cause. Risk of a short list: none   *)
(* of the other faults combines with those listed.                         *)
(***************************************************************************)
StartsOnly == {"ClientStarts"}

StartsAndCommits == StartsOnly \cup {"ClientCommits"}

ClientFaults == StartsOnly \cup
  {"ClientCrashes", "ClientLeaves", "ClientGivesUp", "ClientRequestsRejoin"}

ClientAndOperatorFaults == ClientFaults \cup {"OperatorRemovesMember"}

TimerFaults ==
  {"JoinTimerFiresEarly", "SyncTimerFiresEarly", "SessionTimerFiresEarly"}

NetworkFaults == {"RequestLost", "RequestDuplicated", "ReplyLost"}

ClusterFaults ==
  {"AppendFails", "CoordinatorFailsOver", "OperatorRemovesMember"}

AllButNetworkFaults ==
  ClientFaults \cup TimerFaults \cup ClusterFaults

AllFaults == AllButNetworkFaults \cup NetworkFaults

AllFaultsAndCommits == AllFaults \cup {"ClientCommits"}

\* One fault of one kind, for configurations about that kind.
Crashes   == {"ClientStarts", "ClientCrashes"}
Stalls    == {"ClientStarts", "SessionTimerFiresEarly"}
Rejoins   == {"ClientStarts", "ClientRequestsRejoin"}
SlowJoins == {"ClientStarts", "JoinTimerFiresEarly"}
SlowSyncs == {"ClientStarts", "SyncTimerFiresEarly"}
FailOvers == {"ClientStarts", "CoordinatorFailsOver"}
Copies    == {"ClientStarts", "RequestDuplicated"}
Losses    == {"ClientStarts", "RequestLost", "ReplyLost"}
EarlyTimers == StartsOnly \cup TimerFaults
LossesAndStalls == Losses \cup Stalls

\* Two SyncGroups of one leader, and a new coordinator in between.
RetriesAndFailOver == {"ClientStarts", "ClientGivesUp", "CoordinatorFailsOver"}

\* All present members leave a group while a static one is away.
LeavesAndStalls == {"ClientStarts", "ClientLeaves", "JoinTimerFiresEarly"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" about something that must be reachable, so *)
(* its configuration must fail. They show that the properties do not hold  *)
(* merely because nothing happens.                                         *)
(***************************************************************************)

\* Exclusive processing is not promised (NOT-01).
NoTwoClientsEverBelieveToOwnAPartition ==
  \A c, d \in Clients : c # d => client[c].owned \cap client[d].owned = {}

TheGroupIsNeverStable == group.state # "Stable"

TheGroupIsNeverEmptyAgain == group.state = "Empty" => group.generationId = 0

\* A static leader that returns skips its assignment (C-STATIC-04).
NoStaticLeaderEverSkipsItsAssignment ==
  \A y \in replies : y.api = "JoinGroup" => ~y.skipAssignment

\* A newcomer extends the initial delay (C-JOIN-43).
NoDelayIsEverExtended ==
  group.initial => group.delaysLeft = DelayWindows

\* A cooperative client keeps partitions while it joins (K-CB-11).
NoClientEverKeepsAPartitionWhileJoining ==
  \A c \in Clients : IsWaiting(c) => client[c].owned = {}

\* A new coordinator loads a generation whose assignment no client had received
\* (F-SURV-05).
NoUnreceivedAssignmentIsEverLoaded ==
  group.state = "Stable" /\ group.generationId > 0 /\ group.pendingSync = {} =>
    \E c \in Clients : client[c].generation >= group.generationId
=============================================================================
