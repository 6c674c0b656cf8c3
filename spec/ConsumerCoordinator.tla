------------------------- MODULE ConsumerCoordinator ------------------------
(***************************************************************************)
(* How the coordinator handles a heartbeat, a leave, a timer and a         *)
(* fail-over. A heartbeat gives [g, y]: the group after it and the answer. *)
(* These are functions; there are no variables. n is how many partitions   *)
(* exist.                                                                  *)
(***************************************************************************)
EXTENDS ConsumerReconciliation, ConsumerAssignor

(***************************************************************************)
(* Identity checks. The verdict is how the member gets its place, or the   *)
(* error that refuses it.                                                  *)
(***************************************************************************)
Errors == {"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID",
           "UNRELEASED_INSTANCE_ID"}

\* The current epoch passes, and the previous one too if the request owns
\* nothing beyond A: the answer to the bump may have been lost (M-FENCE-03..06).
EpochVerdict(m, r) ==
  CASE r.epoch = m.epoch -> "known"
    [] /\ r.epoch < m.epoch /\ r.epoch = m.previousEpoch
       /\ r.includesOwned /\ r.owned \subseteq DOMAIN m.assigned -> "known"
    [] OTHER -> "FENCED_MEMBER_EPOCH"

\* Epoch 0 of a known member passes (M-FENCE-07).
ZeroVerdict(m, r) == "known"

\* A request without instance id (M-FENCE-01..07).
DynamicVerdict(g, r) ==
  IF r.memberId \in DOMAIN g.members
  THEN IF r.epoch = 0 THEN ZeroVerdict(g.members[r.memberId], r)
       ELSE EpochVerdict(g.members[r.memberId], r)
  ELSE IF r.epoch = 0 THEN "new" ELSE "UNKNOWN_MEMBER_ID"

\* A member can be replaced if it is away (M-STATIC-02, M-STATIC-03).
MayBeReplaced(m, isOwn) == m.epoch = -2

\* A static member that is present may join again under its own id (M-STATIC-02).
MayRejoin(isOwn) == isOwn

\* A request with an instance id i that the group knows (M-STATIC-01..06, 13).
MappedVerdict(g, r) ==
  LET holder == g.instances[r.instanceId]
      m == g.members[holder]
  IN CASE holder \notin DOMAIN g.members -> "UNKNOWN_MEMBER_ID"
       [] r.epoch > 0 /\ holder # r.memberId -> "FENCED_INSTANCE_ID"
       [] r.epoch > 0 -> EpochVerdict(m, r)
       [] MayBeReplaced(m, holder = r.memberId) -> "replaces"
       [] MayRejoin(holder = r.memberId) -> ZeroVerdict(m, r)
       [] OTHER -> "UNRELEASED_INSTANCE_ID"

Verdict(g, r) ==
  CASE r.instanceId = "" -> DynamicVerdict(g, r)
    [] r.instanceId \in DOMAIN g.instances -> MappedVerdict(g, r)
    [] r.epoch > 0 -> "UNKNOWN_MEMBER_ID"
    [] r.memberId \in DOMAIN g.members -> "relabels"
    [] OTHER -> "new"

-----------------------------------------------------------------------------
(***************************************************************************)
(* The member gets its place, before anything is assigned to it.           *)
(***************************************************************************)
NewMember(inst) == [instanceId |-> inst, epoch |-> 0, previousEpoch |-> -1,
                    state |-> "STABLE", assigned |-> << >>, revoking |-> << >>]

Mapping(g, r) ==
  IF r.instanceId = "" THEN g.instances ELSE Put(g.instances, r.instanceId, r.memberId)

\* The epoch at which a replacement of m starts (M-STATIC-03).
ReplacementEpoch(m) == 0

\* The members without the one that is replaced: an instance id belongs to one member
\* (M-STATIC-03, INV-KIP-14).
WithoutReplaced(members, old) == Without(members, {old})

\* A replacement is a copy of the old member under the new id, at epoch 0, with
\* the old target (M-STATIC-03, M-STATIC-10).
WithReplacement(g, r) ==
  LET old == g.instances[r.instanceId]
      copy == [g.members[old] EXCEPT !.epoch = ReplacementEpoch(g.members[old]),
                                     !.previousEpoch = 0]
  IN [g EXCEPT !.members = Put(WithoutReplaced(@, old), r.memberId, copy),
               !.target = Put(Without(@, {old}), r.memberId, Stored(g, old)),
               !.instances = Mapping(g, r),
               !.sessionTimers = @ \ {old}]   \* it would find no member (M-TMR-09)

\* The instance ids that are free when a member changes its own (M-STATIC-13).
FreedInstances(before) == {before}

\* A known member takes another instance id (M-STATIC-01).
WithNewInstance(g, r) ==
  LET freed == FreedInstances(g.members[r.memberId].instanceId)
  IN [g EXCEPT !.members[r.memberId].instanceId = r.instanceId,
               !.instances = Without(Mapping(g, r), freed)]

WithMember(g, r, verdict) ==
  CASE verdict = "new" -> [g EXCEPT !.members = Put(@, r.memberId, NewMember(r.instanceId)),
                                    !.instances = Mapping(g, r)]
    [] verdict = "replaces" -> WithReplacement(g, r)
    [] verdict = "relabels" -> WithNewInstance(g, r)
    [] OTHER -> g

\* A new member and a changed topic ask for a new target (M-HB-03, M-HB-05).
MustBump(isNew, hashed, n) == isNew \/ hashed # n

\* A new member, or a changed topic, bumps the group epoch, at most once
\* (M-HB-03, M-HB-04, M-HB-05).
MaybeBumpGroupEpoch(g, verdict, n) ==
  IF MustBump(verdict = "new", g.hashed, n)
  THEN [g EXCEPT !.groupEpoch = @ + 1, !.hashed = n] ELSE g

\* A target is computed if the last one is out of date and the interval is over
\* (M-HB-06, M-TGT-01, M-TGT-08).
MustComputeTarget(g) == g.assignmentEpoch < g.groupEpoch /\ ~g.blocked

WithTarget(g, T) == [g EXCEPT !.target = T, !.assignmentEpoch = g.groupEpoch,
                              !.blocked = Interval]

\* The stored target of the requesting member, before and after it gets its
\* place (M-HB-07).
StoredTarget(joined, r, verdict) == Stored(joined, r.memberId)

\* The group just before reconciliation, except for the target.
ApplyVerdict(g, r, verdict, n) == MaybeBumpGroupEpoch(WithMember(g, r, verdict), verdict, n)
BeforeAssignment(g, r, n) == ApplyVerdict(g, r, Verdict(g, r), n)

\* The targets that the assignor may choose; << >> where it is not asked.
TargetsFor(g, r, n) ==
  IF r.epoch < 0 \/ Verdict(g, r) \in Errors \/ ~MustComputeTarget(BeforeAssignment(g, r, n))
  THEN {<< >>} ELSE Targets(BeforeAssignment(g, r, n), n)

\* The epoch towards which members are reconciled: section 7.6, "t is ae".
TargetEpoch(g) == g.assignmentEpoch

\* The rebalance timer runs while the member is UNREVOKED. It is armed with the
\* member's epoch, and again only if something changed (M-TMR-02, M-TMR-04,
\* M-TMR-05).
RebalanceTimers(g, id, before, after) ==
  CASE after = before -> g.rebalanceTimers
    [] after.state = "UNREVOKED" -> Put(g.rebalanceTimers, id, after.epoch)
    [] OTHER -> Without(g.rebalanceTimers, {id})

\* Whether the answer holds the assignment: the request is full, or A changed
\* (M-RSP-01).
IncludesAssignment(before, after, r) == r.full \/ after.assigned # before.assigned

\* The answer: the whole of A (M-RSP-02), and the epoch as stored (INV-KIP-10).
Answer(before, after, r) ==
  LET includesAssignment == IncludesAssignment(before, after, r)
  IN [error |-> "NONE", epoch |-> after.epoch, includesAssignment |-> includesAssignment,
      assignment |-> IF includesAssignment THEN DOMAIN after.assigned ELSE {}]

\* The join of a member m that is there may be older than what m was given
\* since, so its empty list of owned partitions is ignored (M-FENCE-07).
IsStaleJoin(m, r) == r.epoch = 0 /\ m.epoch > 0
WithoutStaleOwned(m, r) ==
  IF IsStaleJoin(m, r) THEN [r EXCEPT !.includesOwned = FALSE, !.owned = {}] ELSE r

\* The rest of a heartbeat r once its member has its place: compute a target,
\* reconcile, set the timers, answer (M-HB-06..11). T is a target for the group
\* so placed.
FinishHeartbeat(applied, r, verdict, T) ==
  LET settled == IF MustComputeTarget(applied) THEN WithTarget(applied, T) ELSE applied
      mine == IF MustComputeTarget(applied) THEN T[r.memberId]
              ELSE StoredTarget(applied, r, verdict)
      before == settled.members[r.memberId]
      after == Reconciled(settled, before, mine, TargetEpoch(settled), WithoutStaleOwned(before, r))
  IN [g |-> [settled EXCEPT
               !.members[r.memberId] = after,
               !.sessionTimers = @ \cup {r.memberId},
               !.rebalanceTimers = RebalanceTimers(settled, r.memberId, before, after)],
      y |-> Answer(before, after, r)]

\* A whole heartbeat (M-HB-01..11); T is one of TargetsFor.
HandleHeartbeat(g, r, n, T) ==
  LET verdict == Verdict(g, r)
  IN IF verdict \in Errors THEN [g |-> g, y |-> Error(verdict)]
     ELSE FinishHeartbeat(BeforeAssignment(g, r, n), r, verdict, T)

\* Whether a commit for p passes with an older epoch than that of the member m:
\* it is not older than the assignment epoch of p (M-PE-08).
OlderEpochMayCommit(m, epoch, p) ==
  \/ p \in DOMAIN m.assigned /\ m.assigned[p] <= epoch
  \/ p \in DOMAIN m.revoking /\ m.revoking[p] <= epoch

-----------------------------------------------------------------------------
(***************************************************************************)
(* Departures, by leave or by timer.                                       *)
(***************************************************************************)

\* The hash of the subscribed topics; without members there is no subscription
\* (M-META-07).
MetadataHash(members, n) == IF DOMAIN members = {} THEN 0 ELSE n

\* The group has no members and no target was computed since, so no interval runs
\* (M-LEAVE-08). A new group is the same.
IsUnassigned(h) == DOMAIN h.members = {}

\* A member goes, with its target and timers; its instance id is free again and
\* the group epoch is bumped (M-LEAVE-03, M-LEAVE-04, M-TGT-07).
WithoutMember(g, id, n) ==
  [g EXCEPT !.members = Without(@, {id}),
            !.target = Without(@, {id}),
            !.instances = Without(@, {g.members[id].instanceId}),
            !.rebalanceTimers = Without(@, {id}),
            !.sessionTimers = @ \ {id},
            !.groupEpoch = @ + 1,
            !.hashed = MetadataHash(Without(g.members, {id}), n)]

\* A member leaves permanently. An emptied group is assigned at its own epoch, so the
\* next member does not wait (M-LEAVE-08).
Fenced(g, id, n) ==
  LET h == WithoutMember(g, id, n)
  IN IF IsUnassigned(h) THEN [h EXCEPT !.assignmentEpoch = h.groupEpoch, !.blocked = FALSE]
     ELSE h

\* What a member keeps while it is away: A, with assignment epochs 0 (M-PE-07).
AwayAssignment(assigned) == [p \in DOMAIN assigned |-> 0]

\* A static member leaves for a while: epoch -2, A stays held with assignment
\* epochs 0, R is freed (M-LEAVE-05, M-PE-04, M-PE-07).
OnTemporaryLeave(g, id) ==
  [g EXCEPT !.members[id] =
     [@ EXCEPT !.epoch = -2, !.revoking = << >>,
               !.assigned = AwayAssignment(@)]]

\* Only the member that has the instance id may leave with it (M-LEAVE-02).
MayLeave(id, holder) == id = holder

\* A leave heartbeat: an unknown member or instance id changes nothing
\* (M-LEAVE-02). No client waits for the answer, so none is modelled.
HandleLeave(g, r, n) ==
  LET holder == IF r.instanceId = "" THEN r.memberId
                ELSE IF r.instanceId \in DOMAIN g.instances THEN g.instances[r.instanceId]
                ELSE ""
  IN CASE ~MayLeave(r.memberId, holder) \/ holder \notin DOMAIN g.members -> g
       [] r.epoch = -2 -> OnTemporaryLeave(g, holder)
       [] OTHER -> Fenced(g, holder, n)

\* The session timer fences its member (M-TMR-01, M-LEAVE-07).
SessionExpired(g, id, n) == Fenced(g, id, n)

\* Whether the rebalance timer, armed at this epoch, is still for the member
\* (M-TMR-02).
IsArmedFor(m, epoch) == m.epoch = epoch

\* The rebalance timer fences its member only if the epoch is still that at
\* arming (M-TMR-02).
RebalanceExpired(g, id, n) ==
  IF id \in DOMAIN g.members /\ IsArmedFor(g.members[id], g.rebalanceTimers[id])
  THEN Fenced(g, id, n)
  ELSE [g EXCEPT !.rebalanceTimers = Without(@, {id})]

\* The group that a new coordinator loads: all session timers, and rebalance
\* timers of unrevoked members (F-LOAD-01, M-TMR-02). The clock decides whether
\* the interval runs; in an empty group it cannot.
Loaded(h, blocked) ==
  [groupEpoch |-> h.groupEpoch, assignmentEpoch |-> h.assignmentEpoch,
   hashed |-> h.hashed, members |-> h.members, target |-> h.target,
   instances |-> h.instances,
   rebalanceTimers |-> [m \in {k \in DOMAIN h.members : h.members[k].state = "UNREVOKED"}
                          |-> h.members[m].epoch],
   sessionTimers |-> DOMAIN h.members,
   blocked |-> blocked /\ ~IsUnassigned(h)]
=============================================================================
