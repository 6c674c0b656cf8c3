-------------------------- MODULE MixedProperties ---------------------------
(***************************************************************************)
(* The promises of the closed mixed group. For each property there is a    *)
(* configuration in which it holds, and one that removes a guard and in    *)
(* which it fails (spec/manifest.json). The names are sentences.           *)
(***************************************************************************)
EXTENDS MixedGroup

Live    == {m \in Present : group.consumer.members[m].epoch >= 0}
Running == {c \in Clients : IsRunning(c)}

(***************************************************************************)
(* c is in step: what it owns came with the current epoch of its member,   *)
(* so its next request is not refused for its age. Written again from the  *)
(* rules C-HB-08, X-HB-01, M-FENCE-04, 06. A client that is not in step is *)
(* fenced (NOT-01).                                                        *)
(***************************************************************************)
ClassicInStep(c) ==
  LET p == classic[c]
  IN IF IsClassicGroup
     THEN /\ p.memberId \in DOMAIN group.classic.members
          /\ p.ownedGeneration = group.classic.generationId
     ELSE /\ p.memberId \in DOMAIN group.subscriptions
          /\ p.ownedGeneration = Member(p.memberId).epoch

ConsumerInStep(c) ==
  LET p == consumer[c]
  IN /\ p.memberId \in Present
     /\ \/ p.epoch = Member(p.memberId).epoch
        \/ /\ p.epoch = Member(p.memberId).previousEpoch
           /\ p.owned \subseteq DOMAIN Member(p.memberId).assigned

InStep(c) ==
  \/ RunsClassic(c) /\ classic[c].owned # {} /\ ClassicInStep(c)
  \/ RunsConsumer(c) /\ ConsumerInStep(c)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Ownership.                                                              *)
(***************************************************************************)

\* Members hold disjoint sets of partitions (INV-KIP-01).
NoPartitionHasTwoHolders ==
  \A m, n \in Present :
    m # n => Consumer!Holding(Member(m)) \cap Consumer!Holding(Member(n)) = {}

\* Clients in step own disjoint sets of partitions, whichever protocol they
\* speak.
NoPartitionHasTwoOwners ==
  \A c, d \in Clients :
    c # d /\ InStep(c) /\ InStep(d) => Owned(c) \cap Owned(d) = {}

\* A joining classic client is let in: its JoinGroup, in flight or sent again,
\* would not be refused now; or it has been answered, and its SyncGroup would
\* not be refused.
MayJoin(c) ==
  LET p == classic[c]
  IN \/ JoinVerdict(group, p.memberId, InstanceOf[c], ClassicMember!JoinMetadata(p))
           \notin JoinErrors
     \/ \E y \in replies :
          /\ y.api = "JoinGroup" /\ y.to = c /\ y.error = "NONE"
          /\ y.generation = Member(p.memberId).epoch

\* c is a client of the consumer group: it has not been fenced. For a classic
\* client its generation decides, and while it joins, whether it is let in
\* (X-JOIN-12).
IsInConsumerGroup(c) ==
  \/ RunsConsumer(c) /\ consumer[c].memberId \in Present
  \/ /\ classic[c].memberId \in DOMAIN group.subscriptions
     /\ \/ classic[c].generation = Member(classic[c].memberId).epoch
        \/ classic[c].state = "joining" /\ MayJoin(c)

\* c is a client of the classic group: a member with its generation.
IsInClassicGroup(c) ==
  /\ classic[c].memberId \in DOMAIN group.classic.members
  /\ classic[c].generation = group.classic.generationId

\* A partition assigned to one member is no longer owned by any other client, unless
\* that client was fenced (INV-KIP-09, for clients of groups of either protocol).
NoPartitionIsReassignedBeforeItIsReleased ==
  \A c \in Clients :
    /\ IsInConsumerGroup(c) =>
         \A m \in Present \ {MemberIdOf(c)} : Owned(c) \cap DOMAIN Member(m).assigned = {}
    /\ IsInClassicGroup(c) =>
         \A m \in DOMAIN group.classic.members \ {classic[c].memberId} :
           Owned(c) \cap group.classic.members[m].assignment = {}

\* A conversion never gives away what a present member still has: INV-KIP-09 without
\* regard to epochs, where no request is late and no timer early.
NoPartitionIsTakenFromAPresentMember ==
  \A c \in Clients : IsRunning(c) /\ MemberIdOf(c) \in Present =>
    \A m \in Present \ {MemberIdOf(c)} : Owned(c) \cap DOMAIN Member(m).assigned = {}

\* SyncGroup returns to a classic member what it holds, for any sender
\* (X-SYNC-06).
EverySyncReturnsTheCurrentAssignment ==
  [][\A y \in replies' \ replies :
       /\ IsConsumerGroup
       /\ y.api = "SyncGroup" /\ y.error = "NONE"
       => y.assignment = DOMAIN Member(classic[y.to].memberId).assigned]_vars

\* SyncGroup returns nothing to a member that lags: there is, or can be, a target
\* that it has not been reconciled with. Only what it has to revoke it must learn
\* (X-SYNC-05).
NoLaggingMemberIsSynced ==
  [][\A y \in replies' \ replies :
       /\ IsConsumerGroup
       /\ y.api = "SyncGroup" /\ y.error = "NONE"
       => LET m == Member(classic[y.to].memberId)
              h == group.consumer
          IN \/ m.state = "UNREVOKED"
             \/ /\ m.epoch = h.assignmentEpoch
                /\ h.assignmentEpoch = h.groupEpoch \/ h.blocked]_vars

\* Fencing: whatever clients believe (NOT-01), the commits of at most one of
\* them are accepted.
NoPartitionHasTwoCommitters ==
  \A c, d \in Clients : \A p \in Owned(c) \cap Owned(d) :
    CommitIsAccepted(c, p) /\ CommitIsAccepted(d, p) => c = d

\* The partitions that the log grants the member of c.
GrantedTo(c) ==
  IF log.protocol = "classic"
  THEN UNION {l.assignment : l \in {n \in log.classic.members : n.memberId = MemberIdOf(c)}}
  ELSE IF MemberIdOf(c) \in DOMAIN log.consumer.members
  THEN Consumer!Holding(log.consumer.members[MemberIdOf(c)]) ELSE {}

\* Every accepted commit is for a partition that the log grants, across all
\* conversions.
OnlyHoldersCommit ==
  \A c \in Clients : \A p \in Owned(c) : CommitIsAccepted(c, p) => p \in GrantedTo(c)

\* A client in step is not refused, across all conversions.
EveryHolderMayCommit ==
  \A c \in Clients : InStep(c) /\ SendsCommits(c) =>
    \A p \in Owned(c) : CommitIsAccepted(c, p)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Epochs.                                                                 *)
(***************************************************************************)

\* A member's epoch is at most the assignment epoch, which is at most the group
\* epoch (INV-KIP-03).
EpochsAreOrdered ==
  /\ group.consumer.assignmentEpoch <= group.consumer.groupEpoch
  /\ \A m \in Live : Member(m).epoch <= group.consumer.assignmentEpoch

EpochOf(g) ==
  IF g.protocol = "classic" THEN g.classic.generationId ELSE g.consumer.groupEpoch

\* A group with members changes its protocol (X-UP-01, X-DOWN-01).
IsUpgrade   == IsClassicGroup /\ DOMAIN group.classic.members # {}
               /\ group'.protocol = "consumer"
IsDowngrade == IsConsumerGroup /\ Present # {} /\ group'.protocol = "classic"

\* Generation and group epoch are one count (INV-CONV-01, X-UP-04, X-DOWN-03).
NoConversionLowersTheEpoch ==
  [][IsUpgrade \/ IsDowngrade => EpochOf(group') >= EpochOf(group)]_vars

\* An upgrade bumps, so all members are asked to take part in a new target
\* (X-UP-15 fixed).
EveryUpgradeBumpsTheEpoch == [][IsUpgrade => EpochOf(group') > EpochOf(group)]_vars

\* The generation in a JoinGroup answer is one with which a SyncGroup would pass
\* now (X-JOIN-15, X-DOWN-23).
EveryJoinAnswerHasTheCurrentGeneration ==
  [][\A y \in replies' \ replies :
       y.api = "JoinGroup" /\ y.error = "NONE" =>
         y.generation = IF group'.protocol = "classic" THEN group'.classic.generationId
                        ELSE group'.consumer.members[y.memberId].epoch]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Targets.                                                                *)
(***************************************************************************)

\* The target of the group epoch gives every member its share, whichever protocol
\* it speaks, and every partition to one member (M-TGT-01..04). So a new member is
\* in it, or the epoch was bumped and the target is to come (M-HB-03, X-JOIN-10).
EveryCurrentTargetIsCompleteAndBalanced ==
  LET h == group.consumer
  IN Present # {} /\ h.assignmentEpoch = h.groupEpoch =>
       /\ DOMAIN h.target = Present
       /\ UNION {h.target[m] : m \in Present} = Parts
       /\ \A m, k \in Present :
            /\ m # k => h.target[m] \cap h.target[k] = {}
            /\ Cardinality(h.target[m]) <= Cardinality(h.target[k]) + 1

-----------------------------------------------------------------------------
(***************************************************************************)
(* Conversions.                                                            *)
(***************************************************************************)

\* The partitions that member m of the classic group g may own: X-UP-05, written
\* again.
MayOwn(g, m) == g.members[m].assignment \cup g.members[m].metadata.owned

\* The partitions converted with m: its assignment, and each claim of m, unless
\* the partition is assigned to another member, or claimed by one whose
\* generation is not older.
IsConvertedWith(g, m, held) ==
  /\ g.members[m].assignment \subseteq held
  /\ held \subseteq MayOwn(g, m)
  /\ \A p \in MayOwn(g, m) \ held : \E n \in DOMAIN g.members \ {m} :
       \/ p \in g.members[n].assignment
       \/ /\ p \in g.members[n].metadata.owned
          /\ g.members[n].metadata.generation >= g.members[m].metadata.generation

\* An upgrade keeps every member and what it owns (INV-CONV-01, X-UP-05). A
\* replaced member keeps its instance id only (X-UP-13).
EveryUpgradeKeepsAllMembers ==
  [][IsUpgrade =>
       \A m \in DOMAIN group.classic.members :
         LET before == group.classic.members[m]
             after == group'.consumer.members[m]
         IN \/ /\ m \in DOMAIN group'.subscriptions
               /\ after.instanceId = before.instanceId
               /\ IsConvertedWith(group.classic, m, Consumer!Holding(after))
               /\ group'.subscriptions[m] = before.metadata
            \/ /\ before.instanceId \in DOMAIN group'.consumer.instances
               /\ group'.consumer.instances[before.instanceId] # m]_vars

\* In a downgrade one member goes or is replaced; the others stay with what they
\* hold (INV-CONV-01, X-DOWN-04).
EveryDowngradeKeepsTheOtherMembers ==
  [][IsDowngrade =>
       /\ Cardinality(Present \ DOMAIN group'.classic.members) = 1
       /\ \A m \in Present \cap DOMAIN group'.classic.members :
            /\ group'.classic.members[m].instanceId = Member(m).instanceId
            /\ group'.classic.members[m].metadata = group.subscriptions[m]
            /\ group'.classic.members[m].assignment =
                 Consumer!Holding(Member(m))]_vars

\* If no rebalance follows a downgrade, a member at rest has all of its target,
\* as it would never learn of the rest (X-DOWN-22).
NoStableDowngradeOwesPartitions ==
  [][IsDowngrade /\ group'.classic.state = "Stable" =>
       \A c \in Clients :
         /\ classic[c].state = "stable"
         /\ classic[c].memberId \in DOMAIN group'.classic.members
         /\ classic[c].generation = group'.classic.generationId
         => classic[c].owned = Consumer!Stored(group.consumer, classic[c].memberId)]_vars

\* Every conversion is one that the policy allows (X-POL-01..04).
EveryConversionIsAllowed ==
  [][/\ IsUpgrade => Policy \in {"bidirectional", "upgrade"}
     /\ IsDowngrade => Policy \in {"bidirectional", "downgrade"}]_vars

\* A group has a protocol when it is upgraded: its first rebalance is over
\* (X-UP-07).
NoGroupIsUpgradedInItsFirstRebalance == [][IsUpgrade => ~group.classic.initial]_vars

\* A refused join affects no other client (X-UP-03 fixed).
NoRejectedJoinAffectsOtherClients ==
  [][\A y \in replies' \ replies :
       ~IsClassic(y) /\ y.error # "NONE" => replies' \ replies = {y} /\ group' = group]_vars

\* A client that comes during the group's first rebalance is asked to wait
\* (X-UP-07 fixed).
NoHeartbeatFailsInternally ==
  \A y \in replies : y.error # "UNKNOWN_SERVER_ERROR"

-----------------------------------------------------------------------------
(***************************************************************************)
(* Requests of classic clients, waits and timers.                          *)
(***************************************************************************)

\* For every client that waits there is a request, a reply or a parked future (X-UP-03,
\* X-JOIN-14): LIV-01 as a safety property, for networks that neither lose nor duplicate.
EveryWaitingClientExpectsAnAnswer == \A c \in Clients : IsWaiting(c) => ExpectsAnswer(c)

\* A stale SyncGroup changes nothing and is refused (X-SYNC-01..03, INV-KIP-17).
\* The left side repeats the rules.
AStaleSyncChangesNothing ==
  [][\A r \in requests \ requests' :
       /\ IsConsumerGroup /\ Present # {}
       /\ r.api = "SyncGroup"
       /\ \/ r.memberId \notin DOMAIN group.subscriptions
          \/ r.generation # Member(r.memberId).epoch
       => group' = group /\ \A y \in replies' \ replies : y.error # "NONE"]_vars

AllMembers == IF IsClassicGroup THEN DOMAIN group.classic.members ELSE Present
InstanceIdOf(m) == IF IsClassicGroup THEN group.classic.members[m].instanceId
                   ELSE Member(m).instanceId

\* Another member has the instance id of this one, so it was replaced, by a
\* process of either protocol.
IsReplaced(id, inst) ==
  id # "" /\ inst # "" /\ \E m \in AllMembers \ {id} : InstanceIdOf(m) = inst

\* A request that a replaced member may not make: any, but a join of the consumer
\* protocol, which may replace the other in turn (M-STATIC-03, X-UP-13).
IsMeantForMembers(r) == IF IsClassic(r) THEN r.api # "LeaveGroup" ELSE r.epoch # 0

\* No request of a replaced member succeeds, whatever the API, the protocol and the
\* kind of group: it changes nothing, and the answer ends the old process
\* (INV-FENCE-01, X-JOIN-08, X-SYNC-01, X-HB-01, M-STATIC-05). A classic group does
\* not know heartbeats of the consumer protocol (M-VAL-24).
EveryReplacedMemberIsFenced ==
  [][/\ \A r \in requests \ requests' :
          IsReplaced(r.memberId, InstanceOf[r.from]) /\ IsMeantForMembers(r) =>
            /\ group' = group
            /\ \A y \in replies' \ replies :
                 y.error \in {"FENCED_INSTANCE_ID",
                              IF IsClassicGroup THEN "GROUP_ID_NOT_FOUND" ELSE ""}
     /\ \A c \in Clients : IsReplaced(MemberIdOf(c), InstanceOf[c]) =>
          /\ \A p \in Owned(c) : ~CommitIsAccepted(c, p)
          /\ ClientHeartbeats(c) => group' = group /\ classic'[c].state = "stopped"]_vars

\* An instance id is mapped to the member that has it (INV-KIP-14).
EveryInstanceMapsToItsMember ==
  LET instances == group.consumer.instances
  IN \A i \in DOMAIN instances :
       instances[i] \in Present /\ Member(instances[i]).instanceId = i

\* Whether r lets its sender take the place of m, which has the same instance id. A
\* consumer process must wait until a member of the same protocol is away (M-STATIC-02,
\* M-STATIC-03); in all other cases the process need not wait (X-JOIN-08, X-UP-13).
Replaces(r, m) ==
  /\ InstanceOf[r.from] # "" /\ InstanceOf[r.from] = InstanceIdOf(m)
  /\ IF IsClassic(r) THEN r.api = "JoinGroup" /\ r.memberId = ""
     ELSE /\ r.epoch = 0
          /\ IsConsumerGroup => m \in DOMAIN group.subscriptions \/ m \notin Live

\* A request ended or suspended the membership of m: its own leave, or the join of a
\* process that takes its place (C-LEAVE-14, C-STATIC-02, M-LEAVE-02..05, X-LEAVE-03).
IsEndedByRequest(m) ==
  \E r \in requests \ requests' : (IsLeave(r) /\ r.memberId = m) \/ Replaces(r, m)

\* A timer of the classic group removed m, for the reason of that timer: m has not
\* joined (C-JOIN-44), has not synced (C-SYNC-20), or was silent while no request of
\* it was parked (C-TMR-07).
IsLateInClassicGroup(m) ==
  LET g == group.classic
  IN \/ /\ JoinTimerFires \/ JoinTimerFiresEarly
        /\ m \notin Classic!Joined(g) \cup Classic!Static(g)
     \/ /\ SyncTimerFires \/ SyncTimerFiresEarly
        /\ m \in g.pendingSync
     \/ /\ SessionTimerFires(m) \/ SessionTimerFiresEarly(m)
        /\ g.members[m].isNew \/ m \notin Classic!Joined(g) \cup Classic!Synced(g)

\* A timer of the consumer group removed m, for the reason of that timer: m was silent
\* (M-TMR-01), has not revoked (M-TMR-02), or is a classic member that has not joined
\* again (X-TMR-02) or has not synced (X-TMR-03).
IsLateInConsumerGroup(m) ==
  \/ SessionTimerFires(m) \/ SessionTimerFiresEarly(m)
  \/ /\ RebalanceTimerFires(m) \/ RebalanceTimerFiresEarly(m)
     /\ m \in Live /\ Member(m).state = "UNREVOKED"
  \/ /\ m \in DOMAIN group.subscriptions
     /\ \/ (MemberJoinTimerFires(m) \/ MemberJoinTimerFiresEarly(m)) /\ MustRejoin(group, m)
        \/ MemberSyncTimerFires(m) \/ MemberSyncTimerFiresEarly(m)

\* A membership ends, or is suspended, by its owner, or by a timer whose reason
\* applies to the member, whatever the conversion in the same step. A live static
\* member of the consumer protocol is not displaced by another one. A fail-over loses
\* only members of a classic group whose assignment is not yet stored (F-SURV-02).
EveryMembershipEndsForAReason ==
  [][\A m \in AllMembers :
       m \notin AllMembers' \/ (m \in Live /\ m \in Present' \ Live') =>
       \/ IsEndedByRequest(m)
       \/ IF IsClassicGroup THEN IsLateInClassicGroup(m) \/ CoordinatorFailsOver
          ELSE IsLateInConsumerGroup(m)]_vars

\* An instance id belongs to one member, in groups of either protocol (INV-MEM-02,
\* INV-KIP-14).
EveryInstanceBelongsToOneMember ==
  \A m, n \in AllMembers : InstanceIdOf(m) # "" /\ InstanceIdOf(m) = InstanceIdOf(n) => m = n

\* Another coordinator would load the same consumer group (F-LOAD-01, X-UP-05).
TheMemoryEqualsTheLog == IsConsumerGroup => log = ConsumerLog(group)

\* A classic member that has to revoke, lags behind the target, or can have all that it
\* waits for, is asked to rejoin by the answer to its next heartbeat (X-HB-03, X-HB-07).
\* The left side repeats the rules.
EveryMemberWithNewsIsAskedToRejoin ==
  \A c \in Clients :
    /\ IsConsumerGroup
    /\ classic[c].state = "stable" /\ classic[c].memberId \in DOMAIN group.subscriptions
    /\ classic[c].generation = Member(classic[c].memberId).epoch
    /\ LET m == Member(classic[c].memberId)
           missing == Consumer!Stored(group.consumer, classic[c].memberId) \ DOMAIN m.assigned
           held == UNION {Consumer!Holding(Member(n)) : n \in Present}
       IN \/ m.state = "UNREVOKED"
          \/ m.epoch < group.consumer.assignmentEpoch
          \/ m.state = "UNRELEASED" /\ missing \cap held = {}
    => ClassicHeartbeat(c).error = "REBALANCE_IN_PROGRESS"

\* A classic member that is asked to rejoin, by the answer to a SyncGroup or a
\* Heartbeat, has the timer that ends the wait for it (X-TMR-02).
EveryMemberAskedToRejoinHasAJoinTimer ==
  [][IsConsumerGroup =>
       /\ \A y \in replies' \ replies :
            y.api = "SyncGroup" /\ y.error = "REBALANCE_IN_PROGRESS" =>
              classic[y.to].memberId \in group'.joinTimers
       /\ \A c \in Clients :
            /\ classic[c].state = "stable"
            /\ classic'[c] = [classic[c] EXCEPT !.state = "unjoined"]
            => classic[c].memberId \in group'.joinTimers]_vars

\* A classic member whose JoinGroup is answered has the timer that ends the wait
\* for its SyncGroup (X-TMR-03).
EveryMemberAskedToSyncHasASyncTimer ==
  [][\A y \in replies' \ replies :
       /\ group'.protocol = "consumer"
       /\ y.api = "JoinGroup" /\ y.error = "NONE"
       => y.memberId \in group'.syncTimers]_vars

\* Every member has its session timer, and no other id has one (M-TMR-01,
\* X-TMR-01).
EveryMemberHasASessionTimer == group.consumer.sessionTimers = Present

\* A member of the consumer protocol that has to revoke has a rebalance timer, which
\* fences it if it does not (M-TMR-02, LIV-08). A classic member has a join timer
\* instead (X-JOIN-21, X-TMR-02).
EveryRevokingMemberHasARebalanceTimer ==
  LET timers == group.consumer.rebalanceTimers
  IN \A m \in Live \ DOMAIN group.subscriptions : Member(m).state = "UNREVOKED" =>
       m \in DOMAIN timers /\ timers[m] = Member(m).epoch

\* A member with a join timer was asked to rejoin, so none is fenced for
\* ignoring a request that it never got (X-TMR-02, X-DOWN-33 fixed).
OnlyMembersAskedToRejoinHaveAJoinTimer ==
  \A m \in group.joinTimers : m \in Present /\ MustRejoin(group, m)

\* Only classic members have sync timers (X-TMR-03).
OnlyClassicMembersHaveASyncTimer == group.syncTimers \subseteq DOMAIN group.subscriptions

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness (LIV-05..08, X-ROLL-02), under FairSpec. The environment has   *)
(* finitely many faults, so it is quiet eventually. A JoinGroup that finds *)
(* no id left waits for ever, so a configuration needs enough of them.     *)
(***************************************************************************)
ClassicHasConverged(c) ==
  LET p == classic[c]
      m == Member(p.memberId)
  IN /\ p.state = "stable"
     /\ IF IsClassicGroup
        THEN /\ group.classic.state = "Stable"
             /\ p.memberId \in DOMAIN group.classic.members
             /\ p.generation = group.classic.generationId
        ELSE /\ p.memberId \in Present
             /\ m.state = "STABLE"
             /\ p.generation = m.epoch /\ m.epoch = group.consumer.assignmentEpoch
             /\ p.owned = DOMAIN m.assigned

ConsumerHasConverged(c) ==
  LET p == consumer[c]
      m == Member(p.memberId)
  IN /\ p.state = "member"
     /\ p.memberId \in Present
     /\ m.state = "STABLE"
     /\ p.epoch = m.epoch /\ m.epoch = group.consumer.assignmentEpoch
     /\ p.owned = DOMAIN m.assigned
     /\ ~p.reconciling /\ ~p.unacknowledged /\ ~p.waiting

ClientHasConverged(c) == IF RunsConsumer(c) THEN ConsumerHasConverged(c) ELSE ClassicHasConverged(c)

\* If the policy allows both conversions, a group whose members all speak one
\* protocol is a group of that protocol.
ProtocolFitsMembers ==
  Policy = "bidirectional" =>
    (IsConsumerGroup <=> \E c \in Running : RunsConsumer(c))

HasConverged ==
  /\ AllMembers = {MemberIdOf(c) : c \in Running}
  /\ \A c \in Running : ClientHasConverged(c)
  /\ Running # {} =>
       /\ ProtocolFitsMembers
       /\ group.consumer.assignmentEpoch = group.consumer.groupEpoch
       /\ UNION {Owned(c) : c \in Running} = Parts

TheGroupConverges == <>[]HasConverged

EveryWaitEnds == \A c \in Clients : IsWaiting(c) ~> ~IsWaiting(c)
=============================================================================
