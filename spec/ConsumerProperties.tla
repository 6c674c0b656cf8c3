------------------------- MODULE ConsumerProperties -------------------------
(***************************************************************************)
(* What the closed consumer group promises. Each property has a            *)
(* configuration in which it holds and one in which a guard is taken away  *)
(* and it fails (spec/manifest.json). Names are sentences.                 *)
(***************************************************************************)
EXTENDS ConsumerGroup

Live    == {m \in Present : group.members[m].epoch >= 0}
Running == {c \in Clients : Runs(c)}

\* The epoch that c has would pass (M-FENCE-04, 06), written again from the rules.
\* Who is not in step is fenced by its next request: NOT-01 speaks of it.
InStep(c) ==
  /\ Belongs(c)
  /\ LET m == group.members[client[c].memberId]
     IN \/ client[c].epoch = m.epoch
        \/ client[c].epoch = m.previousEpoch /\ client[c].owned \subseteq DOMAIN m.assigned

-----------------------------------------------------------------------------
(***************************************************************************)
(* Ownership.                                                              *)
(***************************************************************************)

\* INV-KIP-01
NoPartitionHasTwoHolders ==
  \A m, n \in Present :
    m # n => Holding(group.members[m]) \cap Holding(group.members[n]) = {}

\* Over all that members may still believe to own.
NoPartitionHasTwoOwners ==
  \A c, d \in Clients :
    c # d /\ InStep(c) /\ InStep(d) => client[c].owned \cap client[d].owned = {}

\* INV-KIP-09, for the world outside: what one member is given no other member
\* has any more, unless it was fenced.
NoPartitionIsGivenBeforeItIsGivenUp ==
  \A c \in Clients : Belongs(c) =>
    \A m \in Present \ {client[c].memberId} :
      client[c].owned \cap DOMAIN group.members[m].assigned = {}

\* Fencing: whatever clients believe (NOT-01), commits of one get through.
NoPartitionHasTwoCommitters ==
  \A c, d \in Clients : \A p \in client[c].owned \cap client[d].owned :
    CommitIsAccepted(c, p) /\ CommitIsAccepted(d, p) => c = d

\* A commit that is accepted is for what the log grants.
OnlyAHolderCommits ==
  \A c \in Clients : \A p \in client[c].owned :
    CommitIsAccepted(c, p) =>
      /\ client[c].memberId \in DOMAIN log.members
      /\ p \in Holding(log.members[client[c].memberId])

\* Who is in step is not refused, with the epoch of before either (KIP-1251).
WhoHoldsMayCommit ==
  \A c \in Clients : InStep(c) /\ client[c].epoch > 0 =>
    \A p \in client[c].owned : CommitIsAccepted(c, p)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Epochs.                                                                 *)
(***************************************************************************)

\* INV-KIP-03
EpochsKeepTheirOrder ==
  /\ group.assignmentEpoch <= group.groupEpoch
  /\ \A m \in Live : group.members[m].epoch <= group.assignmentEpoch

\* INV-KIP-04, of what is replicated: a member's epoch falls only when it goes
\* away, and comes back by replacement from 0.
NoEpochFalls ==
  [][/\ log'.groupEpoch >= log.groupEpoch
     /\ log'.assignmentEpoch >= log.assignmentEpoch
     /\ \A m \in DOMAIN log.members \cap DOMAIN log'.members :
          \/ log'.members[m].epoch >= log.members[m].epoch
          \/ log'.members[m].epoch = -2]_log

\* INV-KIP-16
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

\* INV-KIP-02
NothingIsBothAssignedAndRevoked ==
  \A m \in Present :
    DOMAIN group.members[m].assigned \cap DOMAIN group.members[m].revoking = {}

\* INV-KIP-06
AReconciledMemberHasItsTarget ==
  \A m \in Live :
    LET has == DOMAIN group.members[m].assigned
        target == Stored(group, m)
    IN group.members[m].epoch = group.assignmentEpoch =>
         CASE group.members[m].state = "STABLE"     -> has = target
           [] group.members[m].state = "UNRELEASED" -> has \subseteq target
           [] OTHER -> TRUE

\* INV-KIP-07
AMemberIsUnrevokedWhileItHasToRevoke ==
  \A m \in Live :
    group.members[m].state = "UNREVOKED" <=> DOMAIN group.members[m].revoking # {}

\* INV-KIP-14
EveryInstanceIsThatOfAMember ==
  \A i \in DOMAIN group.instances :
    /\ group.instances[i] \in Present
    /\ group.members[group.instances[i]].instanceId = i

\* M-TMR-01
EveryMemberHasItsSessionTimer == group.sessionTimers = Present

\* M-TMR-02, LIV-08: whoever has to revoke is fenced if it does not.
WhoeverHasToRevokeHasATimer ==
  \A m \in Live : group.members[m].state = "UNREVOKED" =>
    m \in DOMAIN group.rebalanceTimers /\ group.rebalanceTimers[m] = group.members[m].epoch

-----------------------------------------------------------------------------
(***************************************************************************)
(* Requests and answers. The right sides repeat the rules rather than use  *)
(* the coordinator's own checks.                                           *)
(***************************************************************************)
OfNoMember(r) == r.memberId \notin Present \/ group.members[r.memberId].epoch = -2
OfAnotherEpoch(r) ==
  LET m == group.members[r.memberId]
  IN /\ r.epoch # m.epoch
     /\ ~ (r.epoch = m.previousEpoch /\ r.tellsOwned /\ r.owned \subseteq DOMAIN m.assigned)

\* M-FENCE-01, 03, 05, INV-KIP-17
AStaleHeartbeatChangesNothing ==
  [][\A r \in requests \ requests' :
       /\ CoordinatorGetsHeartbeat
       /\ r.epoch > 0
       /\ OfNoMember(r) \/ OfAnotherEpoch(r)
       => /\ group' = group /\ unreplicated' = unreplicated /\ log' = log
          /\ \A y \in replies' \ replies : y.error # "NONE"]_vars

\* INV-KIP-10
AnAnswerTellsWhatIsReplicated ==
  [][\A y \in replies' \ replies : y.error = "NONE" =>
       LET m == client[y.to].memberId
       IN m \in DOMAIN log'.members /\ log'.members[m].epoch = y.epoch]_vars

\* INV-KIP-15
WhatIsNotToldDidNotChange ==
  [][\A r \in requests \ requests' :
       /\ CoordinatorGetsHeartbeat
       /\ \E y \in (replies' \cup Open') \ (replies \cup Open) :
            y.to = r.from /\ y.error = "NONE" /\ ~y.tells
       => group'.members[r.memberId].assigned = group.members[r.memberId].assigned]_vars

\* M-FENCE-02: whoever comes to join is not told that it is unknown (LIV-12).
NobodyWhoJoinsIsUnknown ==
  [][\A r \in requests \ requests' :
       r.epoch = 0 => \A y \in replies' \ replies : y.error # "UNKNOWN_MEMBER_ID"]_vars

\* M-STATIC-02, L-06: a static member that comes back is not in its own way.
NobodyIsRefusedForItsOwnSake ==
  [][\A r \in requests \ requests' :
       /\ r.instanceId \in DOMAIN group.instances
       /\ group.instances[r.instanceId] = r.memberId
       => \A y \in replies' \ replies : y.error # "UNRELEASED_INSTANCE_ID"]_vars

\* M-FENCE-07, LIV-12: whoever comes to join is not told that it is too old.
NobodyWhoJoinsIsFenced ==
  [][\A r \in requests \ requests' :
       r.epoch = 0 => \A y \in replies' \ replies : y.error # "FENCED_MEMBER_EPOCH"]_vars

\* M-LEAVE-08: an interval that others began keeps nobody waiting who is alone.
WhoComesFirstNeedNotWait ==
  [][Present = {} /\ DOMAIN group'.members # {} /\ ~CoordinatorFailsOver
     => group'.assignmentEpoch = group'.groupEpoch]_vars

\* M-REC-19: a member that confirms a revocation moves to the assignment epoch,
\* or stays where it is while it has more to revoke.
NoMemberIsBetweenEpochs ==
  [][\/ \A m \in Present \cap DOMAIN group'.members :
          group'.members[m].epoch \in
            {group.members[m].epoch, group'.assignmentEpoch, -2}
     \/ CoordinatorFailsOver]_vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Liveness, under FairSpec. The environment has finitely many faults, so  *)
(* it is quiet in the end. LIV-07, LIV-08.                                 *)
(***************************************************************************)
Reached(c) ==
  LET p == client[c]
      m == group.members[p.memberId]
  IN /\ p.state = "member"
     /\ p.memberId \in Present
     /\ m.state = "STABLE"
     /\ p.epoch = m.epoch /\ m.epoch = group.assignmentEpoch
     /\ p.owned = DOMAIN m.assigned /\ p.owned = Stored(group, p.memberId)
     /\ ~p.reconciling /\ ~p.unacknowledged /\ ~p.waiting

Content ==
  /\ Present = {client[c].memberId : c \in Running}
  /\ \A c \in Running : Reached(c)
  /\ Running # {} =>
       /\ group.assignmentEpoch = group.groupEpoch
       /\ UNION {client[c].owned : c \in Running} = Existing(existing)

TheGroupConverges == <>[]Content

EveryWaitEnds == \A c \in Clients : client[c].waiting ~> ~client[c].waiting

-----------------------------------------------------------------------------
(***************************************************************************)
(* The log keeps what it is given as Durable has it; how it does that is   *)
(* GroupLog.                                                               *)
(***************************************************************************)
DurableLog == INSTANCE Durable WITH
  IsState <- IsHard, Blank <- NewGroup,
  stable  <- log,
  open    <- [i \in 1..Len(unreplicated) |-> unreplicated[i].hard]

TheGroupsLogIsDurable == DurableLog!Spec
=============================================================================
