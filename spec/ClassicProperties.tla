-------------------------- MODULE ClassicProperties -------------------------
(***************************************************************************)
(* What the closed classic group promises. Each property has a             *)
(* configuration in which it holds and one in which a guard is taken away  *)
(* and it fails (spec/manifest.json). Names are sentences.                 *)
(***************************************************************************)
EXTENDS ClassicGroup

Running == {c \in Clients : client[c].state \notin {"down", "stopped"}}

\* Static members are one owner over their restarts, others one per id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id
IdentityOf(c) == Identity(client[c].memberId, InstanceOf[c])

\* The client was told to own, and has not been told otherwise.
Believes(c, p) == p \in client[c].owned

-----------------------------------------------------------------------------
(***************************************************************************)
(* Ownership.                                                              *)
(***************************************************************************)

\* INV-OWN-01
NoPartitionHasTwoOwnersInAGeneration ==
  \A c, d \in Clients : \A p \in Parts :
    /\ Believes(c, p) /\ Believes(d, p)
    /\ client[c].ownedGeneration = client[d].ownedGeneration
    => IdentityOf(c) = IdentityOf(d)

\* Fencing: whatever clients believe (NOT-01), commits of one get through.
NoPartitionHasTwoCommitters ==
  \A c, d \in Clients : \A p \in Parts :
    Believes(c, p) /\ Believes(d, p) /\ CanCommit(c) /\ CanCommit(d) => c = d

\* Who is a member, with an assignment of this generation, is not refused
\* (O-COMMIT-25, 28): fencing keeps others out, and nobody else.
WhoHoldsMayCommit ==
  \A c \in Clients :
    /\ client[c].owned # {}
    /\ KnowsItsGeneration(c)
    /\ client[c].memberId \in DOMAIN group.members
    /\ client[c].generation = group.generationId
    => CanCommit(c)

\* INV-SYNC-01, INV-SYNC-02: the log has what the leader of g sent; who has an
\* assignment of g has its part of that, and nobody has one before the log.
EveryAssignmentIsTheLoggedOne ==
  \A c \in Clients :
    client[c].state = "stable" =>
      /\ client[c].generation <= log.generationId
      /\ client[c].generation = log.generationId =>
           \E l \in log.members :
             /\ Identity(l.memberId, l.instanceId) = IdentityOf(c)
             /\ l.assignment = client[c].owned

-----------------------------------------------------------------------------
(***************************************************************************)
(* Fencing of requests. The right side repeats the rules C-JOIN-38e..g and *)
(* C-SYNC-09 rather than using the coordinator's own checks.               *)
(***************************************************************************)
Stale(g, id, inst, generation) ==
  \/ id \notin DOMAIN g.members
  \/ inst # "" /\ g.members[id].instanceId # inst
  \/ generation # g.generationId

\* INV-SYNC-03, INV-FENCE-01, INV-FENCE-02
AStaleSyncChangesNothing ==
  [][\A r \in requests \ requests' :
       /\ r.api = "SyncGroup"
       /\ Stale(group, r.memberId, InstanceOf[r.from], r.generation)
       => /\ group' = group /\ unreplicated' = unreplicated
          /\ \A y \in replies' \ replies : y.error # "NONE"]_vars

\* INV-FENCE-02: a member that is gone learns it, and keeps nothing alive.
AStaleHeartbeatFencesItsClient ==
  [][\A c \in Clients :
       /\ client[c].state = "stable"
       /\ Stale(group, client[c].memberId, InstanceOf[c], client[c].generation)
       /\ ClientHeartbeats(c)
       => /\ group' = group
          /\ client'[c].owned = {}]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Generations and the shape of the group.                                 *)
(***************************************************************************)

\* INV-GEN-02
TheLoggedGenerationNeverFalls ==
  [][log'.generationId >= log.generationId]_log

\* INV-GEN-01, C-ST-13, C-ST-14, C-ST-21: a join phase that ends, and only
\* that, makes a generation; a new coordinator starts from the log. One step
\* may begin and end a join phase, so Completing may follow Completing.
EveryJoinPhaseEndsInANewGeneration ==
  [][LET ended == group'.state \in {"CompletingRebalance", "Empty"}
         grown == group'.generationId = group.generationId + 1
     IN \/ group' = Loaded(log')
        \/ ended /\ grown
        \/ /\ group'.generationId = group.generationId
           /\ ended => group'.state = group.state]_group

\* INV-MEM-03, INV-MEM-04
AGroupPastJoiningHasALeader ==
  /\ group.state \in {"CompletingRebalance", "Stable"} =>
       group.leader \in DOMAIN group.members
  /\ group.state = "Empty" => group.members = << >> /\ group.leader = ""

\* INV-MEM-06
ParkedSyncsExistOnlyWhileCompleting ==
  group.state # "CompletingRebalance" => Synced(group) = {}

\* INV-MEM-07
EveryPendingSyncIsAMember == group.pendingSync \subseteq DOMAIN group.members

\* C-JOIN-21, C-JOIN-22: room is counted by those who join; absent static
\* members may come on top of them.
NoMoreJoinThanFit ==
  LET present == IF group.state = "PreparingRebalance" THEN Joined(group)
                 ELSE DOMAIN group.members \ Static(group)
  IN Cardinality(present) <= MaxSize

\* G-DATA-09: the flag speaks of the running initial delay.
ANewcomerIsRememberedOnlyInTheDelay == group.newMemberAdded => group.initial

-----------------------------------------------------------------------------
(***************************************************************************)
(* Nothing is forgotten.                                                   *)
(***************************************************************************)

\* LIV-01 as safety, for networks that neither lose nor duplicate: whoever
\* waits is known to somebody who will answer.
NobodyWaitsForNothing == \A c \in Clients : Waiting(c) => Expecting(c)

\* LIV-02: there is always something that ends the join phase ...
APreparingGroupHasItsTimer ==
  group.state = "PreparingRebalance" => group.joinTimer

\* ... and nobody waits for the timer when all are there.
AJoinPhaseEndsWhenAllHaveJoined ==
  group.state = "PreparingRebalance" /\ ~group.initial => ~AllJoined(group)

\* LIV-03
ACompletingGroupHasItsTimer ==
  group.state = "CompletingRebalance" /\ group.pendingSync # {} => group.syncTimer

\* C-STATIC-15, C-JOIN-75: coming back needs no room.
AReturningStaticMemberIsNotRefused ==
  [][\A r \in requests \ requests' :
       /\ r.api = "JoinGroup" /\ Mapped(group, InstanceOf[r.from]) # {}
       /\ group.state \in {"CompletingRebalance", "Stable"}
       => \A y \in replies' \ replies : y.error # "GROUP_MAX_SIZE_REACHED"]_vars

\* F-UNLOAD-01: a new coordinator displaces nobody, so nobody is told that it was.
AFailOverFencesNobody ==
  [][CoordinatorFailsOver =>
       \A y \in replies' \ replies : y.error = "NOT_COORDINATOR"]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness, under FairSpec. The environment has finitely many faults, so  *)
(* it is quiet in the end. LIV-01..06.                                     *)
(***************************************************************************)
Content ==
  IF Running = {} THEN group.state = "Empty"
  ELSE /\ group.state = "Stable"
       /\ DOMAIN group.members = {client[c].memberId : c \in Running}
       /\ \A c \in Running : /\ client[c].state = "stable"
                             /\ client[c].generation = group.generationId
       /\ \A p \in Parts : \E c \in Running : Believes(c, p)

TheGroupSettles == <>[]Content

EveryWaitEnds == \A c \in Clients : Waiting(c) ~> ~Waiting(c)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Refinement: the last replicated record is the decision, what clients    *)
(* believe and what answers on their way tell them are the leases.         *)
(***************************************************************************)
Holds(c, e, things) == [holder |-> IdentityOf(c), epoch |-> e, things |-> things]

Granted ==
  [h \in Ids \cup Instances |->
     UNION {l.assignment : l \in {k \in log.members :
                                    Identity(k.memberId, k.instanceId) = h}}]

Believed == {Holds(c, client[c].ownedGeneration, client[c].owned)
             : c \in {d \in Clients : client[d].owned # {}}}
Told == {Holds(y.to, client[y.to].generation, y.assignment)
         : y \in {z \in replies : z.api = "SyncGroup" /\ z.assignment # {}}}

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Things <- Parts,
  epoch <- log.generationId, grant <- Granted, leases <- Believed \cup Told

TheGroupKeepsOwnership == Abstract!Spec

\* A commit that is accepted is of one who may, as Ownership has it.
OnlyAHolderCommits ==
  \A c \in Clients : CanCommit(c) =>
    \A p \in client[c].owned : Abstract!MayCommit(IdentityOf(c), p)

-----------------------------------------------------------------------------
(***************************************************************************)
(* The log keeps what it is given as Durable has it; how it does that is   *)
(* GroupLog.                                                               *)
(***************************************************************************)
DurableLog == INSTANCE Durable WITH
  IsState <- IsRecord, Blank <- FirstRecord,
  stable  <- log,
  open    <- [i \in 1..Len(unreplicated) |-> unreplicated[i].record]

TheGroupsLogIsDurable == DurableLog!Spec
=============================================================================
