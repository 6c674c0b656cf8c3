--------------------------- MODULE MCConsumerGroup --------------------------
(***************************************************************************)
(* Bounds of the closed consumer group. Each is a named operator that a    *)
(* configuration assigns to a constant; the comment says what the bound    *)
(* cuts off. Bounds are constants of a run. There is no VIEW, no SYMMETRY  *)
(* and no state constraint, so TLC sees the whole graph.                   *)
(***************************************************************************)
EXTENDS ConsumerProperties

(***************************************************************************)
(* Clients. Two are the least that can disagree. Risk: a partition that    *)
(* passes through a third; ThreeClients has that, with fewer faults.       *)
(***************************************************************************)
OneClient    == {"c1"}
TwoClients   == {"c1", "c2"}
ThreeClients == {"c1", "c2", "c3"}

(***************************************************************************)
(* Member ids. A client for which no id is left does not start. Risk: runs *)
(* with more restarts than ids are missing.                                *)
(***************************************************************************)
OneId    == <<"m1">>
TwoIds   == <<"m1", "m2">>
ThreeIds == <<"m1", "m2", "m3">>
FourIds  == <<"m1", "m2", "m3", "m4">>

(***************************************************************************)
(* Partitions. Two among two clients: each may lose one and keep one.      *)
(***************************************************************************)
OnePartition    == <<"p1">>
TwoPartitions   == <<"p1", "p2">>
ThreePartitions == <<"p1", "p2", "p3">>

(***************************************************************************)
(* Which clients are static, and which may change their instance id.       *)
(***************************************************************************)
AllDynamic   == [c \in Clients |-> ""]
FirstStatic  == [c \in Clients |-> IF c = "c1" THEN "i1" ELSE ""]
SameInstance == [c \in Clients |-> "i1"]  \* processes that share one instance id
NoInstanceChanges == [c \in Clients |-> ""]
FirstChangesInstance  == [c \in Clients |-> IF c = "c1" THEN "i2" ELSE ""]

(***************************************************************************)
(* The faults that the environment may cause. Risk of a short list: none   *)
(* of the other faults combines with those listed.                         *)
(***************************************************************************)
StartsOnly == {"ClientStarts"}

StartsAndCommits == StartsOnly \cup {"ClientCommits"}

ClientFaults == {"ClientStarts", "ClientCrashes", "ClientLeaves",
                 "ClientLeavesPermanently", "ClientGivesUp"}

TimerFaults == {"SessionTimerFiresEarly", "RebalanceTimerFiresEarly"}

NetworkFaults == {"RequestLost", "RequestDuplicated", "ReplyLost"}

ClusterFaults == {"AppendFails", "CoordinatorFailsOver", "TopicGrows"}

AllButDuplicates ==
  ClientFaults \cup TimerFaults \cup ClusterFaults
  \cup {"RequestLost", "ReplyLost"}

AllFaults == ClientFaults \cup TimerFaults \cup NetworkFaults
             \cup ClusterFaults

AllFaultsAndChanges == AllFaults \cup {"ClientChangesInstance", "LeaveAppendFails"}

\* One fault of one kind, for configurations about that kind.
Crashes     == {"ClientStarts", "ClientCrashes"}
Leaves      == {"ClientStarts", "ClientLeaves"}
GivingUp    == {"ClientStarts", "ClientGivesUp"}
Stalls      == {"ClientStarts", "SessionTimerFiresEarly"}
GivingUpAndCommits == GivingUp \cup {"ClientCommits"}
TimersAndCommits == StartsAndCommits \cup TimerFaults
SlowRevokes == {"ClientStarts", "RebalanceTimerFiresEarly"}
CrashesAndSlowRevokes == Crashes \cup SlowRevokes
FailOvers   == {"ClientStarts", "CoordinatorFailsOver"}
CrashesAndFailOvers == Crashes \cup FailOvers
FailedWrites == {"ClientStarts", "AppendFails"}
LostReplies == {"ClientStarts", "ReplyLost"}
Losses      == {"ClientStarts", "RequestLost", "ReplyLost"}
EarlyTimers == StartsOnly \cup TimerFaults
LossesAndStalls == Losses \cup Stalls
Growth      == {"ClientStarts", "TopicGrows"}
FailedLeaves == {"ClientStarts", "ClientLeaves", "LeaveAppendFails"}
Copies      == {"ClientStarts", "RequestDuplicated"}
CopiesAndGrowth == Copies \cup Growth
CopiesAndStalls == Copies \cup Stalls
Changes     == {"ClientStarts", "ClientChangesInstance"}
ChangesAndLeaves == {"ClientStarts", "ClientChangesInstance", "ClientLeavesPermanently"}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Witnesses: each says "never" about something that must be reachable, so *)
(* its configuration must fail. They show that the properties do not hold  *)
(* merely because nothing happens.                                         *)
(***************************************************************************)

\* Exclusive processing is not promised (NOT-01).
NoTwoClientsEverBelieveToOwnAPartition ==
  \A c, d \in Clients : c # d => client[c].owned \cap client[d].owned = {}

\* A member gets partitions, as in a STABLE group (M-ST-04).
NoClientEverOwnsAPartition == \A c \in Clients : client[c].owned = {}

\* A member has to revoke (M-MS-02).
NoMemberEverHasToRevoke ==
  \A m \in Present : group.members[m].state # "UNREVOKED"

\* A member waits for a partition that another one holds (M-MS-03).
NoMemberEverWaitsForAPartition ==
  \A m \in Present : group.members[m].state # "UNRELEASED"

\* A static member returns to its partitions, with assignment epochs of 0
\* (M-PE-07) and an epoch above 0 (M-STATIC-03).
NoMemberEverReturnsToItsPartitions ==
  \A m \in Live : \A p \in DOMAIN group.members[m].assigned :
    group.members[m].assigned[p] > 0

\* All members are at their targets, and the group is behind (M-TGT-09).
NoBumpEverWaits ==
  group.blocked => group.assignmentEpoch = group.groupEpoch

\* A lost answer does no harm (M-FENCE-04).
NoPreviousEpochIsEverAccepted ==
  \A r \in requests : r.epoch > 0 /\ r.memberId \in Present =>
    LET m == group.members[r.memberId]
    IN ~ (r.epoch < m.epoch /\ Verdict(group, r) = "known")
=============================================================================
