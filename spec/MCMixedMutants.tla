--------------------------- MODULE MCMixedMutants ---------------------------
(***************************************************************************)
(* The mixed group with one guard removed at a time: in a configuration    *)
(* that must fail, each operator overrides one of the specification.       *)
(* KafkaMixed has the faults of Kafka itself.                              *)
(***************************************************************************)
EXTENDS MCMixedKafka

\* For SyncAssignment: SyncGroup returns the target, even if others hold parts of it
\* (X-SYNC-06).
SyncReturnsTarget(g, m) == Consumer!Stored(g.consumer, m)

\* For ReportedOwned: every join counts as that of an eager member (X-JOIN-11).
NothingReportedOwned(metadata) == {}

\* For Consumer!Obtainable: a wanted partition is taken although another member
\* holds it (M-REC-11).
TakesHeldPartitions(g, m, wanted) == wanted

\* For Consumer!TargetEpoch: a member that is reconciled while computing is
\* blocked gets ahead of the target.
GroupEpochAsTarget(g) == g.groupEpoch

\* For EpochMayCommit: the epoch is not checked (M-PE-08).
AnyEpochMayCommit(m, epoch, p) == TRUE

\* For EpochMayCommit: only the newest epoch passes (M-PE-08).
OnlyCurrentEpochMayCommit(m, epoch, p) == epoch = m.epoch

\* For Classic!CommitError: the generation is not checked (O-COMMIT-25).
CommitErrorWithoutGeneration(g, id, inst, generation) ==
  CASE Classic!MemberError(g, id, inst) # "" -> Classic!MemberError(g, id, inst)
    [] g.state = "CompletingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For Classic!CommitError: a rebalance refuses commits from its start, not only
\* while completing (O-COMMIT-27).
CommitErrorWhilePreparing(g, id, inst, generation) ==
  CASE Classic!MemberError(g, id, inst) # "" -> Classic!MemberError(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state # "Stable" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For ClassicMemberError: the generation is not checked (X-SYNC-03, X-HB-01).
AnyGeneration(g, id, inst, generation) ==
  IF id \in DOMAIN g.subscriptions THEN "" ELSE "UNKNOWN_MEMBER_ID"

\* For ConvertedPartitions: a member is converted without its partitions (X-UP-05).
ConvertedWithoutPartitions(g, m) == {}

\* For StartedSessionTimers: no session timers are started (X-UP-08).
NoTimers(M) == {}

\* For AnswerParkedRequests: parked requests are not answered (X-UP-03).
ParkedRequestsStay(g) == Classic!Outcome(g)

\* For DowngradedEpoch: the classic group starts at generation 1 (X-DOWN-03).
StartsAtGenerationOne(g) == 1

\* For ClassicMemberOf: a member is converted without an assignment (X-DOWN-04).
ConvertedWithoutAssignment(g, m) ==
  [instanceId |-> g.consumer.members[m].instanceId, metadata |-> g.subscriptions[m],
   assignment |-> {}, isNew |-> FALSE, awaitingJoin |-> "no", awaitingSync |-> "no"]

\* For RebalanceAfterDowngrade: the group stays Stable (X-DOWN-06).
StaysStable(stable) == Classic!Outcome(stable)

\* For MayDowngrade: the policy is not asked (X-POL).
AlwaysMayDowngrade == TRUE

\* For ClassicMember!IsWithheld: a partition is given away while another member
\* holds it (A-COOP-01).
NothingIsWithheld(M, m, p) == FALSE

\* For MustJoinBeforeSync: a lagging member is answered (X-SYNC-05).
NoMemberMustJoinBeforeSync(g, m) == FALSE

\* For HasNoProtocol: a group is upgraded in its first rebalance (X-UP-07).
EveryGroupHasAProtocol(g) == FALSE

\* For LoadedSubscriptions: a load forgets which members are classic (X-UP-05).
NoLoadedSubscriptions(l) == << >>

\* For WithJoinTimer and WithSyncTimer: no timer is set (X-TMR-02, X-TMR-03).
NoTimerIsSet(timers, m) == timers

\* For ClassicMemberError: the instance id is not checked (X-SYNC-01, X-HB-01).
ClassicMemberErrorWithoutInstance(g, id, inst, generation) ==
  CASE id \notin DOMAIN g.subscriptions -> "UNKNOWN_MEMBER_ID"
    [] generation # g.consumer.members[id].epoch -> "ILLEGAL_GENERATION"
    [] OTHER -> ""

\* For ClassicMemberError: a member of the consumer protocol passes too (X-SYNC-02,
\* X-HB-01). No classic client has the id of one, so the check is redundant here,
\* and its removal harmless.
ClassicMemberErrorOfAnyMember(g, id, inst, generation) ==
  LET instances == g.consumer.instances
  IN CASE inst # "" /\ inst \notin DOMAIN instances -> "UNKNOWN_MEMBER_ID"
       [] inst # "" /\ instances[inst] # id         -> "FENCED_INSTANCE_ID"
       [] id \notin DOMAIN g.consumer.members       -> "UNKNOWN_MEMBER_ID"
       [] generation # g.consumer.members[id].epoch -> "ILLEGAL_GENERATION"
       [] OTHER -> ""

\* For IsAssignedToAnother: an upgrade overlooks the assignments of others
\* (X-UP-05).
NothingIsAssignedToAnother(g, m, p) == FALSE

\* For Consumer!Mapping: an instance id stays mapped to the member that was
\* replaced (M-STATIC-03).
MappingStays(g, r) ==
  IF r.instanceId = "" \/ r.instanceId \in DOMAIN g.instances THEN g.instances
  ELSE Put(g.instances, r.instanceId, r.memberId)

\* For Consumer!MayBeReplaced: another process takes the place of a member that is
\* present (M-STATIC-02).
PresentMayBeReplaced(m, isOwn) == m.epoch = -2 \/ ~isOwn

\* For Consumer!MustBump: a new member does not bump the epoch (M-HB-03).
NewMemberDoesNotBump(isNew, hashed, n) == hashed # n

\* For Consumer!RebalanceTimers: no rebalance timer is set (M-TMR-02).
NoRebalanceTimer(g, id, before, after) == Without(g.rebalanceTimers, {id})

\* For Classic!WithoutReplaced: a replaced member stays (C-STATIC-02).
ReplacedMemberStays(members, old) == members

\* For AnswerParkedRequests: an upgrade answers parked JoinGroups only (X-UP-03).
ParkedSyncsStay(g) ==
  LET M == DOMAIN g.members
      Unparked == [g EXCEPT !.members = [m \in M |->
                     [@[m] EXCEPT !.awaitingJoin = "no", !.awaitingSync = "no"]]]
      JoinOf(m) == g.members[m].awaitingJoin
      ToJoin(m) == Classic!JoinError(JoinOf(m), "REBALANCE_IN_PROGRESS", "")
  IN Classic!ReplyAll(Classic!Outcome(Unparked), M, JoinOf, ToJoin)

\* For CanGetMore: a classic member does not learn of freed partitions (X-HB-03).
FreedPartitionsAreIgnored(g, m) == FALSE

\* For WithoutOldTimers: timers outlive a change of protocol (M-STATIC-10).
OldTimersStay(g) == g

\* For UpgradedEpoch: an upgrade starts at epoch 1 (X-UP-04).
UpgradedAtEpochOne(g) == 1

\* For OwesPartitions: a downgrade by a join never waits (X-DOWN-22).
NothingIsOwed(h, M) == FALSE

\* For ExpectsAnswer: a client never stops waiting (K-ERR-13, N-ERR-06).
ExpectsAnswerForever(c) == TRUE
=============================================================================
