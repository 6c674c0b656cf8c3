--------------------------- MODULE KafkaConsumer ----------------------------
(***************************************************************************)
(* Kafka's own faults in consumer groups, and the behaviour of older       *)
(* releases. A configuration substitutes an operator for one of the        *)
(* specification. Each comment names the switch of the profiles            *)
(* (profile.py) that does the same in the model.                           *)
(***************************************************************************)
EXTENDS ConsumerSystem

\* For MayRejoin, fault_static_rejoin_unreleased: a static member that joins again is
\* refused (M-STATIC-02).
NoMemberMayRejoin(isOwn) == FALSE

\* For FreedInstances, fault_relabelled_instance_stays: a former instance id stays mapped
\* (M-STATIC-13).
FormerInstanceStays(before) == {}

\* For StoredTarget, fault_new_instance_has_no_target: a member with a changed instance id
\* has no target (M-HB-07).
NewInstanceHasNoTarget(joined, r, verdict) ==
  IF verdict = "relabels" THEN {} ELSE Stored(joined, r.memberId)

\* For Reverted, fault_failed_append_loses_timers: after a refused append the timers stay
\* as the step set them (M-HB-13).
TimersAreNotReverted(g) ==
  [group EXCEPT !.rebalanceTimers = g.rebalanceTimers,
                !.sessionTimers = g.sessionTimers \cap DOMAIN group.members]

\* For IsStaleJoin, fault_rejoin_confirms_revocation: a member that joins again confirms
\* any revocation (M-FENCE-07).
NoJoinIsStale(m, r) == FALSE

\* For ZeroVerdict, old_known_member_at_zero_fenced: epoch 0 of a known member is checked
\* as any other (M-FENCE-07; Kafka 4.0, 4.1).
ZeroIsChecked(m, r) == EpochVerdict(m, r)

\* For AfterRevocation, old_revocation_advances_epoch: a confirmation moves the member to
\* the next epoch (M-REC-19; Kafka 4.0, 4.1).
RevocationAdvances(e) == e + 1

\* For IsUnassigned, old_emptied_group_keeps_target_epoch: the last leave does not assign
\* (M-LEAVE-08; Kafka 4.0 to 4.3).
NoGroupIsUnassigned(h) == FALSE
=============================================================================
