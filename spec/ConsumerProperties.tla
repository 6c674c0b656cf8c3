------------------------- MODULE ConsumerProperties -------------------------
(***************************************************************************)
(* The promises of the closed consumer group. For each property there is a *)
(* configuration in which it holds, and one that removes a guard and in    *)
(* which it fails (spec/manifest.json). The names are sentences.           *)
(***************************************************************************)
EXTENDS ConsumerGroup

Live    == {m \in Present : group.members[m].epoch >= 0}
Running == {c \in Clients : IsRunning(c)}

\* The epoch of c would pass (M-FENCE-04, 06), written again from the rules. The
\* next request of a client that is not in step is fenced (NOT-01).
InStep(c) ==
  /\ IsInGroup(c)
  /\ LET m == group.members[client[c].memberId]
     IN \/ client[c].epoch = m.epoch
        \/ client[c].epoch = m.previousEpoch /\ client[c].owned \subseteq DOMAIN m.assigned

-----------------------------------------------------------------------------
(***************************************************************************)
(* Ownership.                                                              *)
(***************************************************************************)

\* Members hold disjoint sets of partitions (INV-KIP-01).
NoPartitionHasTwoHolders ==
  \A m, n \in Present :
    m # n => Holding(group.members[m]) \cap Holding(group.members[n]) = {}

\* Clients in step own disjoint sets of partitions.
NoPartitionHasTwoOwners ==
  \A c, d \in Clients :
    c # d /\ InStep(c) /\ InStep(d) => client[c].owned \cap client[d].owned = {}

\* A partition assigned to one member is no longer owned by any other client, unless
\* that client was fenced (INV-KIP-09, for clients).
NoPartitionIsReassignedBeforeItIsReleased ==
  \A c \in Clients : IsInGroup(c) =>
    \A m \in Present \ {client[c].memberId} :
      client[c].owned \cap DOMAIN group.members[m].assigned = {}

\* Fencing: whatever clients believe (NOT-01), the commits of at most one of
\* them are accepted.
NoPartitionHasTwoCommitters ==
  \A c, d \in Clients : \A p \in client[c].owned \cap client[d].owned :
    CommitIsAccepted(c, p) /\ CommitIsAccepted(d, p) => c = d

\* Every accepted commit is for a partition that the log grants its member.
OnlyHoldersCommit ==
  \A c \in Clients : \A p \in client[c].owned :
    CommitIsAccepted(c, p) =>
      /\ client[c].memberId \in DOMAIN log.members
      /\ p \in Holding(log.members[client[c].memberId])

\* Every accepted commit is for a partition that its member has had at least since
\* the epoch of the commit, so no other member has committed in between (M-PE-08).
NoCommitIsOlderThanItsGrant ==
  \A c \in Clients : \A p \in client[c].owned :
    CommitIsAccepted(c, p) =>
      LET m == group.members[client[c].memberId]
      IN \/ client[c].epoch = m.epoch
         \/ p \in DOMAIN m.assigned /\ m.assigned[p] <= client[c].epoch
         \/ p \in DOMAIN m.revoking /\ m.revoking[p] <= client[c].epoch

\* A member in step is not refused, with the previous epoch either (KIP-1251).
EveryHolderMayCommit ==
  \A c \in Clients : InStep(c) /\ client[c].epoch > 0 =>
    \A p \in client[c].owned : CommitIsAccepted(c, p)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Epochs.                                                                 *)
(***************************************************************************)

\* A member's epoch is at most the assignment epoch, which is at most the group
\* epoch (INV-KIP-03).
EpochsAreOrdered ==
  /\ group.assignmentEpoch <= group.groupEpoch
  /\ \A m \in Live : group.members[m].epoch <= group.assignmentEpoch

\* No replicated epoch falls (INV-KIP-04): a member's epoch falls only when it
\* leaves for a while, and a replacement starts from 0.
NoEpochDecreases ==
  [][/\ log'.groupEpoch >= log.groupEpoch
     /\ log'.assignmentEpoch >= log.assignmentEpoch
     /\ \A m \in DOMAIN log.members \cap DOMAIN log'.members :
          \/ log'.members[m].epoch >= log.members[m].epoch
          \/ log'.members[m].epoch = -2]_log

\* An assignment epoch is at most the epoch of its member (INV-KIP-16), and 0 for
\* one that is away, so its replacement may commit with any epoch (M-PE-07).
NoAssignmentEpochIsNewerThanItsMember ==
  \A m \in Present : \A p \in Parts :
    LET epoch == IF m \in Live THEN group.members[m].epoch ELSE 0
    IN /\ p \in DOMAIN group.members[m].assigned => group.members[m].assigned[p] <= epoch
       /\ p \in DOMAIN group.members[m].revoking => group.members[m].revoking[p] <= epoch

-----------------------------------------------------------------------------
(***************************************************************************)
(* Targets.                                                                *)
(***************************************************************************)

\* The target of the group epoch gives every member its share, and every
\* partition to one member (M-TGT-01..04, A-RANGE-01, A-UHOM-04). So a new member
\* is in it, or the epoch was bumped and the target is to come (M-HB-03).
EveryCurrentTargetIsCompleteAndBalanced ==
  Present # {} /\ group.assignmentEpoch = group.groupEpoch =>
    /\ DOMAIN group.target = Present
    /\ UNION {group.target[m] : m \in Present} = Existing(group.hashed)
    /\ \A m, k \in Present :
         /\ m # k => group.target[m] \cap group.target[k] = {}
         /\ Cardinality(group.target[m]) <= Cardinality(group.target[k]) + 1

\* The answer NONE to a heartbeat is sent, or waits for the log.
IsAnswered(r) ==
  \E y \in (replies' \cup WaitingAnswers') \ (replies \cup WaitingAnswers) :
    y.to = r.from /\ y.error = "NONE"

\* The next heartbeat after a topic has grown bumps the epoch, so that the next
\* target has the new partitions (M-META-03, M-HB-04, M-EPOCH-03).
EveryGrownTopicBumpsTheEpoch ==
  [][\A r \in requests \ requests' :
       CoordinatorHandlesHeartbeat /\ IsAnswered(r) =>
         /\ group'.hashed = existing
         /\ group.hashed # existing => group'.groupEpoch > group.groupEpoch]_vars

\* A computed target begins an interval, and none is computed while one runs
\* (M-TGT-08, M-TGT-09).
EveryTargetBeginsAnInterval ==
  [][CoordinatorHandlesHeartbeat /\ group'.assignmentEpoch > group.assignmentEpoch =>
       ~group.blocked /\ group'.blocked = Interval]_vars

\* A group without members subscribes to nothing, so it has no metadata hash
\* (M-META-07).
AnEmptyGroupHasNoHash == Present = {} => group.hashed = 0

-----------------------------------------------------------------------------
(***************************************************************************)
(* Members and their states.                                               *)
(***************************************************************************)

\* A and R of a member are disjoint (INV-KIP-02).
NoPartitionIsBothAssignedAndRevoked ==
  \A m \in Present :
    DOMAIN group.members[m].assigned \cap DOMAIN group.members[m].revoking = {}

\* A member at the assignment epoch has its target: all of it when STABLE, part
\* of it when UNRELEASED (INV-KIP-06).
EveryReconciledMemberHasItsTarget ==
  \A m \in Live :
    LET has == DOMAIN group.members[m].assigned
        target == Stored(group, m)
    IN group.members[m].epoch = group.assignmentEpoch =>
         CASE group.members[m].state = "STABLE"     -> has = target
           [] group.members[m].state = "UNRELEASED" -> has \subseteq target
           [] OTHER -> TRUE

\* A member is UNREVOKED if and only if R is not empty (INV-KIP-07).
AMemberIsUnrevokedIffItHasToRevoke ==
  \A m \in Live :
    group.members[m].state = "UNREVOKED" <=> DOMAIN group.members[m].revoking # {}

\* An instance id is mapped to the member that has it (INV-KIP-14).
EveryInstanceMapsToItsMember ==
  \A i \in DOMAIN group.instances :
    /\ group.instances[i] \in Present
    /\ group.members[group.instances[i]].instanceId = i

\* An instance id belongs to one member (INV-KIP-14).
EveryInstanceBelongsToOneMember ==
  \A m, n \in Present :
    /\ group.members[m].instanceId # ""
    /\ group.members[m].instanceId = group.members[n].instanceId
    => m = n

\* Whether a request of c, or a leave, ended or suspended the membership of m:
\* its own, or that of a process with its instance id while m is away
\* (M-LEAVE-02..05, M-STATIC-03).
IsEndedByRequest(m) ==
  \E r \in requests \ requests' :
    \/ r.epoch < 0 /\ r.memberId = m
    \/ /\ r.epoch = 0 /\ r.instanceId # ""
       /\ r.instanceId = group.members[m].instanceId
       /\ m \notin Live

\* The rebalance timer ended the membership of m, which is present and has to
\* revoke (M-TMR-02).
IsTooSlowToRevoke(m) ==
  /\ RebalanceTimerFires(m) \/ RebalanceTimerFiresEarly(m)
  /\ m \in Live /\ group.members[m].state = "UNREVOKED"

\* A membership ends, or is suspended, by its owner, or by a timer whose reason
\* applies to the member. A live static member is not displaced.
EveryMembershipEndsForAReason ==
  [][\A m \in Present :
       m \notin DOMAIN group'.members \/ (group'.members[m].epoch = -2 /\ m \in Live) =>
       \/ IsEndedByRequest(m) \/ IsTooSlowToRevoke(m)
       \/ SessionTimerFires(m) \/ SessionTimerFiresEarly(m)
       \/ CoordinatorFailsOver]_vars

\* A rebalance timer that fires ends only the membership of a member that is
\* present and has to revoke (M-TMR-02, M-LEAVE-05).
ARebalanceTimerFencesOnlyARevokingMember ==
  [][\A m \in Present \ DOMAIN group'.members :
       RebalanceTimerFires(m) \/ RebalanceTimerFiresEarly(m) =>
         m \in Live /\ group.members[m].state = "UNREVOKED"]_vars

\* A member that replaces another starts at epoch 0, whatever the other's was
\* (M-STATIC-03, M-STATIC-10).
EveryReplacementStartsAtZero ==
  [][\A i \in DOMAIN group.instances \cap DOMAIN group'.instances :
       group'.instances[i] # group.instances[i] =>
         \/ group'.members[group'.instances[i]].previousEpoch = 0
         \/ CoordinatorFailsOver]_vars

\* Every member has its session timer, and no other id has one (M-TMR-01).
EveryMemberHasASessionTimer == group.sessionTimers = Present

\* A member that has to revoke has a rebalance timer, which fences it if it does
\* not (M-TMR-02, LIV-08).
EveryRevokingMemberHasARebalanceTimer ==
  \A m \in Live : group.members[m].state = "UNREVOKED" =>
    m \in DOMAIN group.rebalanceTimers /\ group.rebalanceTimers[m] = group.members[m].epoch

\* No other member that is present has a rebalance timer (M-TMR-04).
OnlyRevokingMembersHaveARebalanceTimer ==
  \A m \in DOMAIN group.rebalanceTimers \cap Live : group.members[m].state = "UNREVOKED"

\* A member that is UNRELEASED after its heartbeat waits for a partition that
\* another member holds (M-MS-03, M-REC-11, M-REC-21).
EveryUnreleasedMemberWaitsForAnother ==
  [][\A m \in DOMAIN group'.members :
       LET after == group'.members[m]
       IN /\ after.state = "UNRELEASED" /\ after.epoch = group'.assignmentEpoch
          /\ m \in Present => group.members[m] # after
          /\ CoordinatorHandlesHeartbeat
          => \E k \in DOMAIN group'.members \ {m} :
               Holding(group'.members[k]) \cap (Stored(group', m) \ DOMAIN after.assigned) # {}]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Requests and answers. The right sides repeat the rules; they do not use *)
(* the coordinator's own checks.                                           *)
(***************************************************************************)
IsFromUnknownMember(r) == r.memberId \notin Present \/ group.members[r.memberId].epoch = -2
HasAnotherEpoch(r) ==
  LET m == group.members[r.memberId]
  IN /\ r.epoch # m.epoch
     /\ ~ (r.epoch = m.previousEpoch /\ r.includesOwned /\ r.owned \subseteq DOMAIN m.assigned)

\* A heartbeat of an unknown member or with a stale epoch changes nothing and is
\* refused (M-FENCE-01, 03, 05, INV-KIP-17).
AStaleHeartbeatChangesNothing ==
  [][\A r \in requests \ requests' :
       /\ CoordinatorHandlesHeartbeat
       /\ r.epoch > 0
       /\ IsFromUnknownMember(r) \/ HasAnotherEpoch(r)
       => /\ group' = group /\ unreplicated' = unreplicated /\ log' = log
          /\ \A y \in replies' \ replies : y.error # "NONE"]_vars

\* Another member has the instance id of the sender, so the sender was replaced.
IsReplaced(id, inst) ==
  inst # "" /\ inst \in DOMAIN group.instances /\ group.instances[inst] # id

\* No request of a replaced member succeeds, whatever the API: it changes nothing,
\* and the answer ends the old process (INV-FENCE-01, M-STATIC-02, M-STATIC-05,
\* M-LEAVE-02). To join it must wait until the other is away.
EveryReplacedMemberIsFenced ==
  [][/\ \A r \in requests \ requests' :
          /\ IsReplaced(r.memberId, r.instanceId)
          /\ r.epoch = 0 => group.instances[r.instanceId] \in Live
          => /\ group' = group
             /\ \A y \in replies' \ replies :
                  y.error \in {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"}
     /\ \A c \in Clients : IsReplaced(client[c].memberId, client[c].instanceId) =>
          \A p \in client[c].owned : ~CommitIsAccepted(c, p)]_vars

\* No answer NONE overtakes a batch that was appended before it (F-RT-16).
NoAnswerOvertakesAnOpenBatch ==
  [][\A y \in replies' \ replies :
       y.error = "NONE" => unreplicated = << >> \/ AppendSucceeds]_vars

\* The epoch in an answer NONE is stored and replicated (INV-KIP-10).
EveryAnsweredEpochIsReplicated ==
  [][\A y \in replies' \ replies : y.error = "NONE" =>
       LET m == client[y.to].memberId
       IN m \in DOMAIN log'.members /\ log'.members[m].epoch = y.epoch]_vars

\* An answer without assignment means that A did not change (INV-KIP-15).
EveryChangedAssignmentIsAnswered ==
  [][\A r \in requests \ requests' :
       /\ CoordinatorHandlesHeartbeat
       /\ \E y \in (replies' \cup WaitingAnswers') \ (replies \cup WaitingAnswers) :
            y.to = r.from /\ y.error = "NONE" /\ ~y.includesAssignment
       => group'.members[r.memberId].assigned = group.members[r.memberId].assigned]_vars

\* A client that joins is never answered that it is unknown (M-FENCE-02,
\* LIV-12).
NoJoiningMemberIsUnknown ==
  [][\A r \in requests \ requests' :
       r.epoch = 0 => \A y \in replies' \ replies : y.error # "UNKNOWN_MEMBER_ID"]_vars

\* A returning static member does not block itself (M-STATIC-02, L-06).
NoStaticMemberBlocksItself ==
  [][\A r \in requests \ requests' :
       /\ r.instanceId \in DOMAIN group.instances
       /\ group.instances[r.instanceId] = r.memberId
       => \A y \in replies' \ replies : y.error # "UNRELEASED_INSTANCE_ID"]_vars

\* A client that joins is never answered that its epoch is too old (M-FENCE-07,
\* LIV-12).
NoJoiningMemberIsFenced ==
  [][\A r \in requests \ requests' :
       r.epoch = 0 => \A y \in replies' \ replies : y.error # "FENCED_MEMBER_EPOCH"]_vars

\* The first member of an empty group does not wait for an interval that earlier
\* members began (M-LEAVE-08).
TheFirstMemberNeedNotWait ==
  [][Present = {} /\ DOMAIN group'.members # {} /\ ~CoordinatorFailsOver
     => group'.assignmentEpoch = group'.groupEpoch]_vars

\* A member that confirms a revocation moves to the assignment epoch, or stays
\* where it is while it has more to revoke (M-REC-19).
NoMemberIsBetweenEpochs ==
  [][\/ \A m \in Present \cap DOMAIN group'.members :
          group'.members[m].epoch \in
            {group.members[m].epoch, group'.assignmentEpoch, -2}
     \/ CoordinatorFailsOver]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness (LIV-07, LIV-08), under FairSpec. The environment has finitely *)
(* many faults, so it is quiet eventually.                                 *)
(***************************************************************************)
MemberHasConverged(c) ==
  LET p == client[c]
      m == group.members[p.memberId]
  IN /\ p.state = "member"
     /\ p.memberId \in Present
     /\ m.state = "STABLE"
     /\ p.epoch = m.epoch /\ m.epoch = group.assignmentEpoch
     /\ p.owned = DOMAIN m.assigned /\ p.owned = Stored(group, p.memberId)
     /\ ~p.reconciling /\ ~p.unacknowledged /\ ~p.waiting

HasConverged ==
  /\ Present = {client[c].memberId : c \in Running}
  /\ \A c \in Running : MemberHasConverged(c)
  /\ Running # {} =>
       /\ group.assignmentEpoch = group.groupEpoch
       /\ UNION {client[c].owned : c \in Running} = Existing(existing)

TheGroupConverges == <>[]HasConverged

EveryWaitEnds == \A c \in Clients : client[c].waiting ~> ~client[c].waiting

-----------------------------------------------------------------------------
(***************************************************************************)
(* The log behaves as Durable says; GroupLog shows how.                    *)
(***************************************************************************)
DurableLog == INSTANCE Durable WITH
  IsState <- IsHard, Blank <- NewGroup,
  stable  <- log,
  open    <- [i \in 1..Len(unreplicated) |-> unreplicated[i].hard]

TheGroupRefinesDurable == DurableLog!Spec
=============================================================================
