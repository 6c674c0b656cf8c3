----------------------------- MODULE KafkaMixed -----------------------------
(***************************************************************************)
(* Kafka's own faults in groups whose members speak both protocols, as of  *)
(* Kafka 4.3. KafkaClassic and KafkaConsumer have those of one protocol    *)
(* alone. A configuration substitutes an operator for one of the           *)
(* specification. Each comment names the switch of the profiles            *)
(* (profile.py) that does the same in the model.                           *)
(***************************************************************************)
EXTENDS MixedCoordinator

\* For ErrorWithoutProtocol, fault_upgrade_without_protocol: an upgrade in the first
\* rebalance is an internal error (X-UP-07).
InternalErrorWithoutProtocol == "UNKNOWN_SERVER_ERROR"

\* For RejectHeartbeat, fault_upgrade_answers_before_checks: parked requests are answered
\* although the upgrade fails (X-UP-03).
RejectAfterAnswering(g, error) ==
  LET early == error \in {"UNKNOWN_SERVER_ERROR", "COORDINATOR_LOAD_IN_PROGRESS"}
      answered == AnswerParkedOnUpgrade(g)
  IN [w |-> IF early THEN [Outcome([g EXCEPT !.classic = answered.g]) EXCEPT !.out = answered.out]
            ELSE Outcome(g),
      y |-> Consumer!Error(error)]

\* For BumpAfterUpgrade, fault_upgrade_without_bump: an upgrade by a known member does
\* not bump (X-UP-15).
NoBumpAfterUpgrade(g, h) == h

\* For TargetIsDue, fault_classic_members_starve: classic members are not told of a target
\* that is due (X-HB-03, X-SYNC-05).
NoTargetIsDue(h) == FALSE

\* For OwesPartitions, fault_downgrade_owes: a downgrade forgets incomplete targets
\* (X-DOWN-22).
IncompleteTargetsAreForgotten(h, M) == FALSE

\* For DowngradeByJoin, fault_downgrade_loses_bump: the classic group starts from the
\* epoch before the request, and the joiner is answered at once (X-DOWN-23).
DowngradeLosesBump(before, after, rebalances) == [generation |-> before, parks |-> FALSE]

\* For RemainingTimers, fault_downgrade_leaves_timers: a downgrade leaves timers armed
\* (X-DOWN-06, X-DOWN-33).
AllTimersRemain(timers) == timers

\* For Missed, fault_join_generation_ignored: the generation of a JoinGroup is ignored
\* (X-JOIN-06, 10, 12).
NothingIsMissed(h, id, metadata) == "nothing"

\* For AssignedInDowngrade, fault_downgrade_assigns_target: a downgrade assigns targets,
\* whatever members hold (X-DOWN-04).
TargetIsAssigned(h, m) == Consumer!Stored(h, m)

\* For ValidClaims, fault_upgrade_overlooks_owned: an upgrade overlooks owned partitions
\* (X-UP-05, C-JOIN-42).
NoClaimIsValid(g, m) == {}

\* For ContinuedCount, fault_empty_group_counts_anew: a group that replaces an empty one
\* of the other type counts anew (C-JOIN-16, M-VAL-22).
CountsAnew(count) == 0
=============================================================================
