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

\* INV-KIP-09, for clients: a partition assigned to one member is no longer
\* owned by any other client, unless that client was fenced.
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

\* An assignment epoch is at most the epoch of its member (INV-KIP-16).
NoAssignmentEpochIsNewerThanItsMember ==
  \A m \in Live : \A p \in Parts :
    /\ p \in DOMAIN group.members[m].assigned =>
         group.members[m].assigned[p] <= group.members[m].epoch
    /\ p \in DOMAIN group.members[m].revoking =>
         group.members[m].revoking[p] <= group.members[m].epoch

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

\* Every member has its session timer, and no other id has one (M-TMR-01).
EveryMemberHasASessionTimer == group.sessionTimers = Present

\* A member that has to revoke has a rebalance timer, which fences it if it does
\* not (M-TMR-02, LIV-08).
EveryRevokingMemberHasARebalanceTimer ==
  \A m \in Live : group.members[m].state = "UNREVOKED" =>
    m \in DOMAIN group.rebalanceTimers /\ group.rebalanceTimers[m] = group.members[m].epoch

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
