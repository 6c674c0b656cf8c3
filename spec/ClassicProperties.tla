-------------------------- MODULE ClassicProperties -------------------------
(***************************************************************************)
(* The promises of the closed classic group. For each property there is a  *)
(* configuration in which it holds, and one that removes a guard and in    *)
(* which it fails (spec/manifest.json). The names are sentences.           *)
(***************************************************************************)
EXTENDS ClassicGroup

Running == {c \in Clients : client[c].state \notin {"down", "stopped"}}

\* A static member is one owner across its restarts; any other owner is a member
\* id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id
IdentityOf(c) == Identity(client[c].memberId, InstanceOf[c])

\* The client was given p, and has not learned that it lost p.
BelievesToOwn(c, p) == p \in client[c].owned

-----------------------------------------------------------------------------
(***************************************************************************)
(* Ownership.                                                              *)
(***************************************************************************)

\* Two owners of one partition in the same generation are the same member
\* (INV-OWN-01).
NoPartitionHasTwoOwnersInAGeneration ==
  \A c, d \in Clients : \A p \in Parts :
    /\ BelievesToOwn(c, p) /\ BelievesToOwn(d, p)
    /\ client[c].ownedGeneration = client[d].ownedGeneration
    => IdentityOf(c) = IdentityOf(d)

\* Fencing: whatever clients believe (NOT-01), the commits of at most one of
\* them are accepted.
NoPartitionHasTwoCommitters ==
  \A c, d \in Clients : \A p \in Parts :
    BelievesToOwn(c, p) /\ BelievesToOwn(d, p) /\ CanCommit(c) /\ CanCommit(d) => c = d

\* A member with an assignment of this generation is not refused (O-COMMIT-25,
\* 28): fencing keeps out others only.
EveryHolderMayCommit ==
  \A c \in Clients :
    /\ client[c].owned # {}
    /\ HasItsGeneration(c)
    /\ client[c].memberId \in DOMAIN group.members
    /\ client[c].generation = group.generationId
    => CanCommit(c)

\* The log holds what the leader of generation g sent. A member with an
\* assignment of g has its part of that, and no member has one before the record
\* is replicated (INV-SYNC-01, INV-SYNC-02).
EveryAssignmentIsLogged ==
  \A c \in Clients :
    client[c].state = "stable" =>
      /\ client[c].generation <= log.generationId
      /\ client[c].generation = log.generationId =>
           \E l \in log.members :
             /\ Identity(l.memberId, l.instanceId) = IdentityOf(c)
             /\ l.assignment = client[c].owned

\* A partition assigned to one member is no longer owned by the client of another,
\* unless that client is behind the generation (INV-KIP-09).
NoPartitionIsReassignedBeforeItIsReleased ==
  \A c \in Clients :
    /\ client[c].memberId \in DOMAIN group.members
    /\ client[c].generation = group.generationId
    => \A m \in DOMAIN group.members \ {client[c].memberId} :
         client[c].owned \cap group.members[m].assignment = {}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Fencing of requests. The right side repeats the rules C-JOIN-38e..g and *)
(* C-SYNC-09; it does not use the coordinator's own checks.                *)
(***************************************************************************)
IsStale(g, id, inst, generation) ==
  \/ id \notin DOMAIN g.members
  \/ inst # "" /\ g.members[id].instanceId # inst
  \/ generation # g.generationId

\* A stale SyncGroup neither changes the group nor gets an assignment
\* (INV-SYNC-03, INV-FENCE-01, INV-FENCE-02).
AStaleSyncChangesNothing ==
  [][\A r \in requests \ requests' :
       /\ r.api = "SyncGroup"
       /\ IsStale(group, r.memberId, InstanceOf[r.from], r.generation)
       => /\ group' = group /\ unreplicated' = unreplicated
          /\ \A y \in replies' \ replies : y.error # "NONE"]_vars

\* A removed member learns of it from its heartbeat, which keeps no session
\* alive (INV-FENCE-02).
AStaleHeartbeatFencesItsClient ==
  [][\A c \in Clients :
       /\ client[c].state = "stable"
       /\ IsStale(group, client[c].memberId, InstanceOf[c], client[c].generation)
       /\ ClientHeartbeats(c)
       => /\ group' = group
          /\ client'[c].owned = {}]_vars

\* Another member has the instance id of this one, so it was replaced.
IsReplaced(g, id, inst) ==
  /\ id # "" /\ inst # ""
  /\ \E m \in DOMAIN g.members \ {id} : g.members[m].instanceId = inst

\* No request of a replaced member succeeds, whatever the API: it changes
\* nothing, and the answer ends the old process (INV-FENCE-01, C-JOIN-38f,
\* C-SYNC-08, C-HB-08).
EveryReplacedMemberIsFenced ==
  [][/\ \A r \in requests \ requests' :
          /\ r.api \in {"JoinGroup", "SyncGroup"}
          /\ IsReplaced(group, r.memberId, InstanceOf[r.from])
          => /\ group' = group /\ unreplicated' = unreplicated
             /\ \A y \in replies' \ replies :
                  y.error \in {"FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"}
     /\ \A c \in Clients :
          IsReplaced(group, client[c].memberId, InstanceOf[c]) =>
            /\ ~CanCommit(c)
            /\ ClientHeartbeats(c) => group' = group /\ client'[c].state = "stopped"]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Generations and the shape of the group.                                 *)
(***************************************************************************)

\* The generation in the log never falls (INV-GEN-02).
TheLoggedGenerationNeverDecreases ==
  [][log'.generationId >= log.generationId]_log

\* The end of a join phase, and nothing else, makes a new generation; a new
\* coordinator starts from the log (INV-GEN-01, C-ST-13, C-ST-14, C-ST-21). One
\* step may begin and end a join phase, so Completing may follow Completing.
EveryJoinPhaseEndsInANewGeneration ==
  [][LET ended == group'.state \in {"CompletingRebalance", "Empty"}
         grown == group'.generationId = group.generationId + 1
     IN \/ group' = Loaded(log')
        \/ ended /\ grown
        \/ /\ group'.generationId = group.generationId
           /\ ended => group'.state = group.state]_group

\* A group past its join phase is led by one of its members; an Empty group has
\* no members and no leader (INV-MEM-03, INV-MEM-04).
EveryGroupHasALeaderAfterItsJoinPhase ==
  /\ group.state \in {"CompletingRebalance", "Stable"} =>
       group.leader \in DOMAIN group.members
  /\ group.state = "Empty" => group.members = << >> /\ group.leader = ""

\* An instance id belongs to one member (INV-MEM-02, C-STATIC-02).
EveryInstanceBelongsToOneMember ==
  \A m, n \in Static(group) :
    group.members[m].instanceId = group.members[n].instanceId => m = n

\* SyncGroups are parked only while the group is Completing (INV-MEM-06).
ParkedSyncsExistOnlyWhileCompleting ==
  group.state # "CompletingRebalance" => Synced(group) = {}

\* Every id in pendingSync is a member (INV-MEM-07).
EveryPendingSyncIsAMember == group.pendingSync \subseteq DOMAIN group.members

\* A change of a member's subscription is part of the next assignment: the
\* JoinGroup is not answered within the generation (C-JOIN-52, C-JOIN-54).
EveryChangedSubscriptionStartsARebalance ==
  [][\A r \in requests \ requests' :
       /\ r.api = "JoinGroup"
       /\ r.memberId \in DOMAIN group.members
       /\ group.members[r.memberId].metadata # r.metadata
       /\ \E y \in replies' \ replies : y.to = r.from /\ y.error = "NONE"
       => group'.generationId > group.generationId]_vars

\* The leader of a Stable group joins again because it wants another assignment, so
\* its JoinGroup starts a rebalance, even with the same subscription (C-JOIN-53).
EveryRejoinOfALeaderStartsARebalance ==
  [][\A r \in requests \ requests' :
       /\ CoordinatorHandlesJoin
       /\ r.api = "JoinGroup"
       /\ group.state = "Stable" /\ r.memberId = group.leader
       /\ InstanceOf[r.from] \in {"", group.members[r.memberId].instanceId}
       => group'.state # "Stable"]_vars

\* A static leader that returns to a Stable group must not assign: the members keep
\* what they have (C-STATIC-04).
EveryLeaderOfAStableGroupSkipsItsAssignment ==
  [][\A y \in replies' \ replies :
       /\ y.api = "JoinGroup" /\ y.error = "NONE"
       /\ group'.state = "Stable" /\ y.memberId = y.leader
       => y.skipAssignment]_vars

\* A rebalance that interrupts the sync phase blanks all assignments: they belong to
\* the generation before, and a conversion must not take them for those of the next one
\* (C-JOIN-42, C-SYNC-22, X-UP-05).
ARebalanceInTheSyncPhaseBlanksAssignments ==
  [][/\ group.state = "CompletingRebalance"
     /\ \/ group'.state = "PreparingRebalance"
        \/ group'.generationId > group.generationId
     => \A m \in DOMAIN group'.members : group'.members[m].assignment = {}]_vars

\* A newcomer in the initial delay extends it, as long as extensions are left
\* (C-JOIN-43).
EveryNewcomerExtendsTheInitialDelay ==
  [][/\ JoinTimerFires \/ JoinTimerFiresEarly
     /\ group.initial /\ group.newMemberAdded /\ group.delaysLeft > 0
     => /\ group'.initial /\ group'.joinTimer
        /\ group'.delaysLeft = group.delaysLeft - 1]_vars

\* Before the join timer fires, a join phase ends only when every member has
\* joined, the last one in this step, and no id is pending (C-ST-23, C-JOIN-41).
NoJoinPhaseEndsEarly ==
  [][\/ group'.generationId <= group.generationId
     \/ JoinTimerFires \/ JoinTimerFiresEarly
     \/ /\ group'.pendingJoin = {}
        /\ Cardinality(DOMAIN group'.members \ Joined(group)) <= 1]_vars

\* The join timer removed m: a dynamic member that has not joined (C-JOIN-44).
IsLateToJoin(m) ==
  /\ JoinTimerFires \/ JoinTimerFiresEarly
  /\ m \notin Joined(group) \cup Static(group)

\* The sync timer removed m, which has not synced (C-SYNC-20).
IsLateToSync(m) ==
  /\ SyncTimerFires \/ SyncTimerFiresEarly
  /\ m \in group.pendingSync

\* The session timer removed m, which has no request parked, or is new
\* (C-TMR-07).
IsExpired(m) ==
  /\ SessionTimerFires(m) \/ SessionTimerFiresEarly(m)
  /\ group.members[m].isNew \/ m \notin Joined(group) \cup Synced(group)

\* The member's own request, a process with its instance id, or an operator
\* ended the membership of m (C-LEAVE-14, C-STATIC-02, C-JOIN-23).
IsEndedByRequest(m) ==
  \/ OperatorRemovesMember(m)
  \/ \E r \in requests \ requests' :
       \/ r.memberId = m
       \/ r.api = "JoinGroup" /\ InstanceOf[r.from] # ""
          /\ InstanceOf[r.from] = group.members[m].instanceId

\* A membership ends by its owner, by an operator, or by a timer whose reason
\* applies to the member (C-LEAVE-14, C-STATIC-02, C-TMR-07, C-JOIN-44, C-SYNC-20).
EveryMembershipEndsForAReason ==
  [][\A m \in DOMAIN group.members \ DOMAIN group'.members :
       \/ IsEndedByRequest(m) \/ IsExpired(m) \/ IsLateToJoin(m) \/ IsLateToSync(m)
       \/ CoordinatorFailsOver]_vars

\* Capacity counts the members that join; absent static members may come on top
\* of them (C-JOIN-21, C-JOIN-22).
NoMoreMembersJoinThanMaxSize ==
  LET present == IF group.state = "PreparingRebalance" THEN Joined(group)
                 ELSE DOMAIN group.members \ Static(group)
  IN Cardinality(present) <= MaxSize

\* The flag newMemberAdded is about the initial delay that runs now (G-DATA-09).
NewMemberAddedIsSetOnlyInTheInitialDelay == group.newMemberAdded => group.initial

-----------------------------------------------------------------------------
(***************************************************************************)
(* Every wait has something that ends it.                                  *)
(***************************************************************************)

\* For every client that waits there is a request, a reply or a parked future: LIV-01
\* as a safety property, for networks that neither lose nor duplicate.
EveryWaitingClientExpectsAnAnswer == \A c \in Clients : IsWaiting(c) => ExpectsAnswer(c)

\* Something always ends the join phase (LIV-02): the timer ...
EveryPreparingGroupHasAJoinTimer ==
  group.state = "PreparingRebalance" => group.joinTimer

\* ... or, before it fires, the last member that joins.
AJoinPhaseEndsWhenAllHaveJoined ==
  group.state = "PreparingRebalance" /\ ~group.initial => ~AllJoined(group)

\* A completing group with pending syncs has its sync timer (LIV-03).
EveryCompletingGroupHasASyncTimer ==
  group.state = "CompletingRebalance" /\ group.pendingSync # {} => group.syncTimer

\* A sync timer runs only for members that have not synced; no rebalance inherits
\* that of an earlier one (C-TMR-02, C-JOIN-42).
ASyncTimerRunsOnlyForPendingSyncs ==
  group.syncTimer => group.pendingSync # {} /\ group.state \in {"CompletingRebalance", "Stable"}

\* A join timer runs only in a join phase (C-TMR-01).
AJoinTimerRunsOnlyInAJoinPhase == group.joinTimer => group.state = "PreparingRebalance"

\* Every pending id has a session timer, and every member that has no request
\* parked; also after a load (C-TMR-03..05, F-LOAD-06).
EveryMemberHasASessionTimer ==
  group.pendingJoin \cup (DOMAIN group.members \ (Joined(group) \cup Synced(group)))
    \subseteq group.sessionTimers

\* A static member that returns needs no new room (C-STATIC-15, C-JOIN-75).
NoReturningStaticMemberIsRejected ==
  [][\A r \in requests \ requests' :
       /\ r.api = "JoinGroup" /\ MappedMembers(group, InstanceOf[r.from]) # {}
       /\ group.state \in {"CompletingRebalance", "Stable"}
       => \A y \in replies' \ replies : y.error # "GROUP_MAX_SIZE_REACHED"]_vars

\* A fail-over displaces no member, so no answer says that it was fenced
\* (F-UNLOAD-01).
NoFailOverFencesAMember ==
  [][CoordinatorFailsOver =>
       \A y \in replies' \ replies : y.error = "NOT_COORDINATOR"]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness (LIV-01..06), under FairSpec. The environment has finitely     *)
(* many faults, so it is quiet eventually.                                 *)
(***************************************************************************)
HasConverged ==
  IF Running = {} THEN group.state = "Empty"
  ELSE /\ group.state = "Stable"
       /\ DOMAIN group.members = {client[c].memberId : c \in Running}
       /\ \A c \in Running : /\ client[c].state = "stable"
                             /\ client[c].generation = group.generationId
       /\ \A p \in Parts : \E c \in Running : BelievesToOwn(c, p)

TheGroupSettles == <>[]HasConverged

EveryWaitEnds == \A c \in Clients : IsWaiting(c) ~> ~IsWaiting(c)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Refinement: the last replicated record is the decision. The leases are  *)
(* what clients believe to own, and the assignments in replies in flight.  *)
(***************************************************************************)
LeaseOf(c, e, resources) == [holder |-> IdentityOf(c), epoch |-> e, resources |-> resources]

LoggedGrant ==
  [h \in Ids \cup Instances |->
     UNION {l.assignment : l \in {k \in log.members :
                                    Identity(k.memberId, k.instanceId) = h}}]

BelievedLeases == {LeaseOf(c, client[c].ownedGeneration, client[c].owned)
                   : c \in {d \in Clients : client[d].owned # {}}}
SentLeases == {LeaseOf(y.to, client[y.to].generation, y.assignment)
               : y \in {z \in replies : z.api = "SyncGroup" /\ z.assignment # {}}}

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Resources <- Parts,
  epoch <- log.generationId, grant <- LoggedGrant, leases <- BelievedLeases \cup SentLeases

TheGroupRefinesOwnership == Abstract!Spec

\* Every accepted commit is one that Ownership allows.
OnlyHoldersCommit ==
  \A c \in Clients : CanCommit(c) =>
    \A p \in client[c].owned : Abstract!MayCommit(IdentityOf(c), p)

-----------------------------------------------------------------------------
(***************************************************************************)
(* The log behaves as Durable says; GroupLog shows how.                    *)
(***************************************************************************)
DurableLog == INSTANCE Durable WITH
  IsState <- IsRecord, Blank <- FirstRecord,
  stable  <- log,
  open    <- [i \in 1..Len(unreplicated) |-> unreplicated[i].record]

TheGroupRefinesDurable == DurableLog!Spec
=============================================================================
