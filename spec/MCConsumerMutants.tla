-------------------------- MODULE MCConsumerMutants -------------------------
(***************************************************************************)
(* The consumer group with one guard removed at a time: in a configuration *)
(* that must fail, each operator overrides one of the specification.       *)
(* KafkaConsumer has the faults of Kafka itself.                           *)
(***************************************************************************)
EXTENDS MCConsumerKafka

\* For Obtainable: a wanted partition is taken although another member holds it
\* (M-REC-11).
TakesHeldPartitions(g, m, wanted) == wanted

\* For MustRevoke: a lost partition is free at once (M-REC-10).
NeverMustRevoke(r, lost) == FALSE

\* For Confirms: any heartbeat confirms (M-REC-18).
AlwaysConfirms(r, m) == TRUE

\* For OlderEpochMayCommit: assignment epochs are not checked (M-PE-08).
AnyOlderEpochMayCommit(m, epoch, p) == TRUE

\* For OlderEpochMayCommit: only the newest epoch passes (M-PE-08).
NoOlderEpochMayCommit(m, epoch, p) == FALSE

\* For TargetEpoch: a member that is reconciled while computing is blocked gets
\* ahead of the target.
GroupEpochAsTarget(g) == g.groupEpoch

\* For GrantEpoch: the group epoch instead of t (M-PE-06).
GrantedAtGroupEpoch(g, t) == g.groupEpoch

\* For Kept: a partition to be revoked stays assigned (M-REC-10).
KeepsRevokedPartitions(held, T) == held

\* For StillRevoking: the revocation never ends (M-REC-12).
RevokesForever(m) == m.revoking

\* For EpochVerdict: the epoch is not checked (M-FENCE-03, M-FENCE-05).
AnyEpochIsCurrent(m, r) == "known"

\* For IncludesAssignment: only full requests are answered with the assignment (M-RSP-01).
IncludesAssignmentIfFull(before, after, r) == r.full

\* For SentAtOnce: no answer waits (M-HB-11).
AllSentAtOnce(answers) == answers

\* For Loaded: a new coordinator starts with an empty group (F-LOAD-01).
LoadedEmpty(h, blocked) ==
  [groupEpoch |-> 1, assignmentEpoch |-> 1, hashed |-> 0, members |-> << >>,
   target |-> << >>, instances |-> << >>, rebalanceTimers |-> << >>,
   sessionTimers |-> {}, blocked |-> FALSE]

\* For SessionExpired: a member goes without a bump (M-EPOCH-04).
ExpiresWithoutBump(g, id, n) ==
  [WithoutMember(g, id, n) EXCEPT !.groupEpoch = g.groupEpoch]

\* For MustBump: a new member does not bump the epoch (M-HB-03).
NewMemberDoesNotBump(isNew, hashed, n) == hashed # n

\* For MustBump: a grown topic does not bump the epoch (M-HB-04).
GrownTopicDoesNotBump(isNew, hashed, n) == isNew

\* For MayBeReplaced: another process takes the place of a member that is present
\* (M-STATIC-02).
PresentMayBeReplaced(m, isOwn) == m.epoch = -2 \/ ~isOwn

\* For MayLeave: a process may leave for the one that replaced it (M-LEAVE-02).
AnyProcessMayLeave(id, holder) == TRUE

\* For AwayAssignment: a member that is away keeps its assignment epochs (M-PE-07).
AwayKeepsEpochs(assigned) == assigned

\* For WaitForOpenBatches: answers overtake open batches (F-RT-16).
NoAnswerWaits(answers) == FALSE

\* For Obtainable: a member cannot get back what it has just given up (M-REC-21).
OnlyFreePartitions(g, m, wanted) == {p \in wanted : IsFree(g, p)}

\* For RebalanceTimers: the timer is not cancelled when the member has revoked
\* (M-TMR-04).
RebalanceTimersStay(g, id, before, after) ==
  IF after # before /\ after.state = "UNREVOKED"
  THEN Put(g.rebalanceTimers, id, after.epoch) ELSE g.rebalanceTimers

\* For IsArmedFor: a rebalance timer is for any epoch of its member (M-TMR-02).
ArmedForAnyEpoch(m, epoch) == TRUE

\* For EpochVerdict: the previous epoch passes, whatever the request owns
\* (M-FENCE-04).
AnyPreviousEpochIsCurrent(m, r) ==
  IF r.epoch = m.epoch \/ r.epoch = m.previousEpoch THEN "known" ELSE "FENCED_MEMBER_EPOCH"

\* For OlderEpochMayCommit: partitions to be revoked have no assignment epochs
\* (M-PE-08). To revoke, the member needs a request with an epoch that is at least
\* theirs, and its client keeps that epoch; so the check is redundant here, and its
\* removal harmless.
RevokingMayAlwaysCommit(m, epoch, p) ==
  \/ p \in DOMAIN m.assigned /\ m.assigned[p] <= epoch
  \/ p \in DOMAIN m.revoking

\* For ReplacementEpoch: a replacement keeps the epoch of the member that is away
\* (M-STATIC-03).
KeepsItsEpoch(m) == m.epoch

\* For WithoutMember: the instance id of a member that is gone stays mapped (M-LEAVE-04).
InstanceStaysMapped(g, id, n) ==
  [g EXCEPT !.members = Without(@, {id}), !.target = Without(@, {id}),
            !.rebalanceTimers = Without(@, {id}), !.sessionTimers = @ \ {id},
            !.groupEpoch = @ + 1, !.hashed = MetadataHash(Without(g.members, {id}), n)]

\* For WithoutReplaced: a replaced member stays (M-STATIC-03).
ReplacedConsumerStays(members, old) == members

\* For WithTarget: no interval begins (M-TGT-08).
NoIntervalBegins(g, T) ==
  [g EXCEPT !.target = T, !.assignmentEpoch = g.groupEpoch, !.blocked = FALSE]

\* For Answer: the epoch in the answer is that before the heartbeat (M-RSP-02).
AnswerWithPreviousEpoch(before, after, r) ==
  LET includesAssignment == IncludesAssignment(before, after, r)
  IN [error |-> "NONE", epoch |-> IF before.epoch > 0 THEN before.epoch ELSE after.epoch,
      includesAssignment |-> includesAssignment,
      assignment |-> IF includesAssignment THEN DOMAIN after.assigned ELSE {}]

\* For Reconciled: a member that has its target keeps its old epoch (M-REC-02).
TargetReachedKeepsEpoch(g, m, T, t, r) ==
  CASE m.state = "STABLE" /\ (m.epoch = t \/ (m.epoch > 0 /\ DOMAIN m.assigned = T)) -> m
    [] m.state = "UNREVOKED" /\ ~Confirms(r, m) -> m
    [] m.state = "UNREVOKED" -> Advanced(g, m, T, t, r, AfterRevocation(m.epoch))
    [] OTHER -> Advanced(g, m, T, t, r, m.epoch)

\* For Loaded: a load sets no rebalance timers (M-TMR-02, F-LOAD-05).
LoadedWithoutRebalanceTimers(h, blocked) ==
  [groupEpoch |-> h.groupEpoch, assignmentEpoch |-> h.assignmentEpoch, hashed |-> h.hashed,
   members |-> h.members, target |-> h.target, instances |-> h.instances,
   rebalanceTimers |-> << >>, sessionTimers |-> DOMAIN h.members,
   blocked |-> blocked /\ ~IsUnassigned(h)]

\* For MustRevoke: a heartbeat that does not list owned partitions confirms (M-REC-10,
\* M-REC-18).
UnlistedPartitionsAreReleased(r, lost) == lost # {} /\ r.owned \cap lost # {}

\* For MetadataHash: an emptied group keeps its hash (M-META-07).
EmptiedGroupKeepsHash(members, n) == n

\* For ExpectsAnswer: a client never stops waiting (N-ERR-06).
ExpectsAnswerForever(c) == TRUE

\* For Surviving: replicated batches may be lost with the others.
ReplicatedStateIsLost(k) == IF k = 0 THEN NewGroup ELSE unreplicated[k].hard
=============================================================================
