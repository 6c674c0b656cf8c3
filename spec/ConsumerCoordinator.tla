------------------------- MODULE ConsumerCoordinator ------------------------
(***************************************************************************)
(* What the coordinator makes of a heartbeat, a leave, a timer and a       *)
(* fail-over. A heartbeat gives [g, y]: the group after it and the answer. *)
(* Functions; no variables. n is how many partitions exist.                *)
(***************************************************************************)
EXTENDS ConsumerReconciliation, ConsumerAssignor

(***************************************************************************)
(* Who asks. The verdict is how the member comes to its place, or the      *)
(* error that refuses it.                                                  *)
(***************************************************************************)
Errors == {"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID",
           "UNRELEASED_INSTANCE_ID"}

\* M-FENCE-03..06
EpochVerdict(m, r) ==
  CASE r.epoch = m.epoch -> "known"
    [] /\ r.epoch < m.epoch /\ r.epoch = m.previousEpoch
       /\ r.tellsOwned /\ r.owned \subseteq DOMAIN m.assigned -> "known"
    [] OTHER -> "FENCED_MEMBER_EPOCH"

\* M-FENCE-07: epoch 0 of a known member.
ZeroVerdict(m, r) ==
  IF old_known_member_at_zero_fenced THEN EpochVerdict(m, r) ELSE "known"

\* M-FENCE-01..07
DynamicVerdict(g, r) ==
  IF r.memberId \in DOMAIN g.members
  THEN IF r.epoch = 0 THEN ZeroVerdict(g.members[r.memberId], r)
       ELSE EpochVerdict(g.members[r.memberId], r)
  ELSE IF r.epoch = 0 THEN "new" ELSE "UNKNOWN_MEMBER_ID"

\* M-STATIC-01..06, 13; i is an instance id that the group knows.
MappedVerdict(g, r) ==
  LET holder == g.instances[r.instanceId]
      m == g.members[holder]
  IN CASE holder \notin DOMAIN g.members -> "UNKNOWN_MEMBER_ID"
       [] r.epoch > 0 /\ holder # r.memberId -> "FENCED_INSTANCE_ID"
       [] r.epoch > 0 -> EpochVerdict(m, r)
       [] m.epoch = -2 -> "replaces"
       [] holder = r.memberId /\ ~fault_static_rejoin_unreleased -> ZeroVerdict(m, r)
       [] OTHER -> "UNRELEASED_INSTANCE_ID"

Verdict(g, r) ==
  CASE r.instanceId = "" -> DynamicVerdict(g, r)
    [] r.instanceId \in DOMAIN g.instances -> MappedVerdict(g, r)
    [] r.epoch > 0 -> "UNKNOWN_MEMBER_ID"
    [] r.memberId \in DOMAIN g.members -> "relabels"
    [] OTHER -> "new"

-----------------------------------------------------------------------------
(***************************************************************************)
(* The member takes its place, before anything is assigned to it.          *)
(***************************************************************************)
Fresh(inst) == [instanceId |-> inst, epoch |-> 0, previousEpoch |-> -1,
                state |-> "STABLE", assigned |-> << >>, revoking |-> << >>]

Mapping(g, r) ==
  IF r.instanceId = "" THEN g.instances ELSE Put(g.instances, r.instanceId, r.memberId)

\* M-STATIC-03, M-STATIC-10
Replaced(g, r) ==
  LET old == g.instances[r.instanceId]
      copy == [g.members[old] EXCEPT !.epoch = 0, !.previousEpoch = 0]
  IN [g EXCEPT !.members = Put(Without(@, {old}), r.memberId, copy),
               !.target = Put(Without(@, {old}), r.memberId, Stored(g, old)),
               !.instances = Mapping(g, r),
               !.sessionTimers = @ \ {old}]   \* M-TMR-09: it would find nobody

\* M-STATIC-01, M-STATIC-13
Relabelled(g, r) ==
  LET before == g.members[r.memberId].instanceId
      forgotten == IF fault_relabelled_instance_stays THEN {} ELSE {before}
  IN [g EXCEPT !.members[r.memberId].instanceId = r.instanceId,
               !.instances = Without(Mapping(g, r), forgotten)]

Seated(g, r, verdict) ==
  CASE verdict = "new" -> [g EXCEPT !.members = Put(@, r.memberId, Fresh(r.instanceId)),
                                    !.instances = Mapping(g, r)]
    [] verdict = "replaces" -> Replaced(g, r)
    [] verdict = "relabels" -> Relabelled(g, r)
    [] OTHER -> g

\* M-HB-03, M-HB-04, M-HB-05
Bumped(g, verdict, n) ==
  IF verdict = "new" \/ g.hashed # n
  THEN [g EXCEPT !.groupEpoch = @ + 1, !.hashed = n] ELSE g

\* M-HB-06, M-TGT-01, M-TGT-08
Computes(g) == g.assignmentEpoch < g.groupEpoch /\ ~g.blocked

Assigned(g, T) == [g EXCEPT !.target = T, !.assignmentEpoch = g.groupEpoch,
                            !.blocked = Interval]

\* M-HB-07: the target that is stored for who asks, before and after its seating.
StoredTarget(seated, r, verdict) ==
  CASE verdict = "relabels" /\ fault_new_instance_has_no_target -> {}
    [] OTHER -> Stored(seated, r.memberId)

\* The group right before reconciliation, but for the target.
Placed(g, r, verdict, n) == Bumped(Seated(g, r, verdict), verdict, n)
Prepared(g, r, n) == Placed(g, r, Verdict(g, r), n)

\* What the assignor may come up with; << >> where it is not asked.
TargetsFor(g, r, n) ==
  IF r.epoch < 0 \/ Verdict(g, r) \in Errors \/ ~Computes(Prepared(g, r, n))
  THEN {<< >>} ELSE Targets(Prepared(g, r, n), n)

\* The epoch towards which members are reconciled: 7.6, "t is ae".
TargetEpoch(g) == g.assignmentEpoch

\* M-TMR-02, M-TMR-04, M-TMR-05
RebalanceTimers(g, id, before, after) ==
  CASE after = before -> g.rebalanceTimers
    [] after.state = "UNREVOKED" -> Put(g.rebalanceTimers, id, after.epoch)
    [] OTHER -> Without(g.rebalanceTimers, {id})

\* M-RSP-01
Tells(before, after, r) == r.full \/ after.assigned # before.assigned

\* M-RSP-02; the epoch told is the one stored (INV-KIP-10).
Answer(before, after, r) ==
  LET tells == Tells(before, after, r)
  IN [error |-> "NONE", epoch |-> after.epoch, tells |-> tells,
      assignment |-> IF tells THEN DOMAIN after.assigned ELSE {}]

\* M-FENCE-07: the join of a member m that is there may be older than what m was
\* given since; "I own nothing" counts as not said.
Reported(m, r) ==
  IF r.epoch = 0 /\ m.epoch > 0 /\ ~fault_rejoin_confirms_revocation
  THEN [r EXCEPT !.tellsOwned = FALSE, !.owned = {}] ELSE r

\* M-HB-06..11: what comes of r once its member has its place; T is a target for
\* the group so placed.
BeatFrom(placed, r, verdict, T) ==
  LET settled == IF Computes(placed) THEN Assigned(placed, T) ELSE placed
      mine == IF Computes(placed) THEN T[r.memberId]
              ELSE StoredTarget(placed, r, verdict)
      before == settled.members[r.memberId]
      after == Reconciled(settled, before, mine, TargetEpoch(settled), Reported(before, r))
  IN [g |-> [settled EXCEPT
               !.members[r.memberId] = after,
               !.sessionTimers = @ \cup {r.memberId},
               !.rebalanceTimers = RebalanceTimers(settled, r.memberId, before, after)],
      y |-> Answer(before, after, r)]

\* M-HB-01..11; T is one of TargetsFor.
Beat(g, r, n, T) ==
  LET verdict == Verdict(g, r)
  IN IF verdict \in Errors THEN [g |-> g, y |-> Error(verdict)]
     ELSE BeatFrom(Prepared(g, r, n), r, verdict, T)

\* M-PE-08: a commit for p with an older epoch than that of the member m.
OlderEpochCommits(m, epoch, p) ==
  \/ p \in DOMAIN m.assigned /\ m.assigned[p] <= epoch
  \/ p \in DOMAIN m.revoking /\ m.revoking[p] <= epoch

-----------------------------------------------------------------------------
(***************************************************************************)
(* Going, by leave or by timer.                                            *)
(***************************************************************************)

\* M-META-07: without members nothing is subscribed.
HashOf(members, n) == IF DOMAIN members = {} THEN 0 ELSE n

\* M-LEAVE-08: nobody is there, and nothing was computed since: no interval runs.
\* So it is in a new group.
IsUnassigned(h) == DOMAIN h.members = {} /\ ~old_emptied_group_keeps_target_epoch

\* M-LEAVE-03, M-LEAVE-04, M-TGT-07; its instance id is free again.
Departed(g, id, n) ==
  [g EXCEPT !.members = Without(@, {id}),
            !.target = Without(@, {id}),
            !.instances = Without(@, {g.members[id].instanceId}),
            !.rebalanceTimers = Without(@, {id}),
            !.sessionTimers = @ \ {id},
            !.groupEpoch = @ + 1,
            !.hashed = HashOf(Without(g.members, {id}), n)]

\* M-LEAVE-08
Fenced(g, id, n) ==
  LET h == Departed(g, id, n)
  IN IF IsUnassigned(h) THEN [h EXCEPT !.assignmentEpoch = h.groupEpoch, !.blocked = FALSE]
     ELSE h

\* M-LEAVE-05, M-PE-04, M-PE-07
Away(g, id) ==
  [g EXCEPT !.members[id] =
     [@ EXCEPT !.epoch = -2, !.revoking = << >>,
               !.assigned = [p \in DOMAIN @ |-> 0]]]

\* M-LEAVE-02: nobody waits for the answer, so there is none here.
Leave(g, r, n) ==
  LET holder == IF r.instanceId = "" THEN r.memberId
                ELSE IF r.instanceId \in DOMAIN g.instances THEN g.instances[r.instanceId]
                ELSE ""
  IN CASE holder # r.memberId \/ holder \notin DOMAIN g.members -> g
       [] r.epoch = -2 -> Away(g, holder)
       [] OTHER -> Fenced(g, holder, n)

\* M-TMR-01, M-LEAVE-07
SessionExpired(g, id, n) == Fenced(g, id, n)

\* M-TMR-02: only while the epoch is the one at arming.
RebalanceExpired(g, id, n) ==
  IF id \in DOMAIN g.members /\ g.members[id].epoch = g.rebalanceTimers[id]
  THEN Fenced(g, id, n)
  ELSE [g EXCEPT !.rebalanceTimers = Without(@, {id})]

\* F-LOAD-01, M-TMR-02. Whether the interval runs is a matter of the clock, but
\* for a group in which none can.
Loaded(h, blocked) ==
  [groupEpoch |-> h.groupEpoch, assignmentEpoch |-> h.assignmentEpoch,
   hashed |-> h.hashed, members |-> h.members, target |-> h.target,
   instances |-> h.instances,
   rebalanceTimers |-> [m \in {k \in DOMAIN h.members : h.members[k].state = "UNREVOKED"}
                          |-> h.members[m].epoch],
   sessionTimers |-> DOMAIN h.members,
   blocked |-> blocked /\ ~IsUnassigned(h)]
=============================================================================
