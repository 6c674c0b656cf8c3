--------------------------- MODULE MixedCoordinator -------------------------
(***************************************************************************)
(* How the coordinator handles each request, timer and fail-over, for      *)
(* either kind of group. These are functions; there are no variables.      *)
(***************************************************************************)
EXTENDS MixedConversion

(***************************************************************************)
(* ConsumerGroupHeartbeat. T is one of the targets that the assignor may   *)
(* choose, << >> where it is not asked.                                    *)
(***************************************************************************)

\* A classic member is replaced by a consumer member with its instance id
\* (M-STATIC-03, X-UP-13).
HeartbeatVerdict(g, r) ==
  LET holder == g.consumer.instances[r.instanceId]
  IN IF /\ r.instanceId \in DOMAIN g.consumer.instances
        /\ r.epoch = 0 /\ holder \in DOMAIN g.subscriptions
     THEN "replaces" ELSE Consumer!Verdict(g.consumer, r)

\* A new group continues the count of the empty one that it replaces (M-VAL-22 and
\* C-JOIN-16 fixed).
ContinuedCount(count) == count

NewConsumerGroup(g) ==
  LET begin == IF ContinuedCount(g.generationId) = 0
               THEN NoConsumerGroup.groupEpoch ELSE ContinuedCount(g.generationId)
  IN [NoConsumerGroup EXCEPT !.groupEpoch = begin, !.assignmentEpoch = begin]

\* The consumer group that the heartbeat finds: an empty classic group is
\* replaced by a new one (M-VAL-22); one with members is converted first
\* (X-UP-01).
GroupForHeartbeat(g, r) ==
  CASE g.protocol = "consumer" -> g
    [] g.classic.state = "Empty" -> ConsumerGroup(NewConsumerGroup(g.classic), << >>)
    [] OTHER -> Upgraded(g.classic)

UpgradesGroup(g) == g.protocol = "classic" /\ g.classic.state # "Empty"

\* An upgrade always bumps, once (X-UP-15 fixed).
BumpAfterUpgrade(g, h) ==
  IF UpgradesGroup(g) /\ h.groupEpoch = Upgraded(g.classic).consumer.groupEpoch
  THEN [h EXCEPT !.groupEpoch = @ + 1] ELSE h

\* The consumer group just before reconciliation, except for the target.
HeartbeatApplied(g, r) ==
  LET found == GroupForHeartbeat(g, r)
      verdict == HeartbeatVerdict(found, r)
  IN BumpAfterUpgrade(g, Consumer!ApplyVerdict(found.consumer, r, verdict, Size))

\* The error if a group in its first rebalance would have to be converted (X-UP-07).
ErrorWithoutProtocol == "COORDINATOR_LOAD_IN_PROGRESS"

\* The error if the group does not take heartbeats, or "" (X-UP-02, X-UP-07,
\* M-VAL-24).
GroupError(g, r) ==
  CASE g.protocol = "consumer" -> ""
    [] r.epoch # 0 -> "GROUP_ID_NOT_FOUND"
    [] g.classic.state = "Empty" -> ""
    [] ~MayUpgrade -> "GROUP_ID_NOT_FOUND"
    [] HasNoProtocol(g.classic) -> ErrorWithoutProtocol
    [] OTHER -> ""

TargetsOf(h) == IF Consumer!MustComputeTarget(h) THEN Consumer!Targets(h, Size) ELSE {<< >>}

HeartbeatTargets(g, r) ==
  IF GroupError(g, r) # ""
     \/ HeartbeatVerdict(GroupForHeartbeat(g, r), r) \in Consumer!Errors
  THEN {<< >>} ELSE TargetsOf(HeartbeatApplied(g, r))

\* Join and sync timers end with the member, or when it changes its protocol
\* (M-STATIC-10): they would find no member.
WithoutOldTimers(g) ==
  [g EXCEPT !.joinTimers = @ \cap DOMAIN g.subscriptions,
            !.syncTimers = @ \cap DOMAIN g.subscriptions]

\* The answers that an upgrade releases, and the group without them.
AnswerParkedOnUpgrade(g) ==
  IF UpgradesGroup(g) THEN AnswerParkedRequests(g.classic) ELSE Classic!Outcome(g.classic)

\* A heartbeat that is refused has no effect (X-UP-03).
RejectHeartbeat(g, error) == [w |-> Outcome(g), y |-> Consumer!Error(error)]

\* A heartbeat r and its answer (M-HB-01..11, X-UP-03..11).
HandleHeartbeat(g, r, T) ==
  LET found == GroupForHeartbeat(g, r)
      verdict == HeartbeatVerdict(found, r)
      after == Consumer!FinishHeartbeat(HeartbeatApplied(g, r), r, verdict, T)
      present == DOMAIN after.g.members
      joined == [found EXCEPT
                   !.consumer = after.g,
                   !.subscriptions = [m \in (DOMAIN @ \cap present) \ {r.memberId} |-> @[m]],
                   !.joinTimers = g.joinTimers, !.syncTimers = g.syncTimers]
  IN IF GroupError(g, r) # ""
     THEN RejectHeartbeat(g, GroupError(g, r))
     ELSE IF verdict \in Consumer!Errors
     THEN [w |-> Outcome(g), y |-> Consumer!Error(verdict)]
     ELSE [w |-> [Outcome(WithoutOldTimers(joined)) EXCEPT
                    !.out = AnswerParkedOnUpgrade(g).out],
           y |-> after.y]

\* A leave heartbeat (M-LEAVE-02..05), for whose answer no client waits. A classic group
\* refuses it (M-VAL-24).
HandleLeave(g, r) ==
  LET holder == IF r.instanceId = "" THEN r.memberId
                ELSE IF r.instanceId \in DOMAIN g.consumer.instances
                THEN g.consumer.instances[r.instanceId] ELSE ""
  IN CASE g.protocol = "classic" -> Outcome(g)
       [] holder # r.memberId \/ holder \notin DOMAIN g.consumer.members -> Outcome(g)
       [] r.epoch = -2 -> Outcome([g EXCEPT !.consumer = Consumer!OnTemporaryLeave(@, holder)])
       [] OTHER -> RemoveMember(g, holder)

-----------------------------------------------------------------------------
(***************************************************************************)
(* JoinGroup to a consumer group with members (9.3). fresh is the next id. *)
(***************************************************************************)
JoinErrors == {"INCONSISTENT_GROUP_PROTOCOL", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"}

\* The answer to an earlier JoinGroup of the member m was lost.
MissedAnAnswer(m, metadata) ==
  /\ metadata.generation = m.previousEpoch /\ m.previousEpoch # m.epoch
  /\ metadata.owned \subseteq DOMAIN m.assigned

(***************************************************************************)
(* A JoinGroup with a member id is checked as a heartbeat would be         *)
(* (X-JOIN-06, 10, 12 fixed; M-FENCE-04). The subscription gives its       *)
(* generation; without one, its claims must be the member's.               *)
(***************************************************************************)
IsInStep(h, id, metadata) ==
  LET present == id \in DOMAIN h.members
  IN \/ present /\ metadata.generation = h.members[id].epoch
     \/ /\ metadata.generation = -1
        /\ metadata.owned \subseteq IF present THEN Consumer!Holding(h.members[id]) ELSE {}

\* The sender of a JoinGroup has missed "nothing", an "answer", or "more".
Missed(h, id, metadata) ==
  CASE id \in DOMAIN h.members /\ MissedAnAnswer(h.members[id], metadata) -> "answer"
    [] IsInStep(h, id, metadata) -> "nothing"
    [] OTHER -> "more"

IsOutOfStep(g, id, metadata) == id # "" /\ Missed(g.consumer, id, metadata) = "more"

\* How the joining member gets its place, or the error (X-POL-04,
\* X-JOIN-02..08).
JoinVerdict(g, id, inst, metadata) ==
  LET instances == g.consumer.instances
  IN CASE Policy = "disabled" -> "INCONSISTENT_GROUP_PROTOCOL"
       [] inst = "" /\ id = "" -> "id required"
       [] inst # "" /\ inst \notin DOMAIN instances ->
            IF id = "" THEN "new" ELSE "UNKNOWN_MEMBER_ID"
       [] inst # "" /\ id = "" -> "replaces"
       [] inst # "" /\ instances[inst] # id -> "FENCED_INSTANCE_ID"
       [] IsOutOfStep(g, id, metadata) -> "UNKNOWN_MEMBER_ID"
       [] OTHER -> IF id \in DOMAIN g.consumer.members THEN "known" ELSE "new"

\* A partition that is not listed is given up (X-JOIN-11).
ReportedOwned(metadata) == metadata.owned

\* The list of a member that has missed an answer confirms nothing (M-REC-18).
IncludesOwned(h, id, metadata) == Missed(h, id, metadata) # "answer"

\* The join, written as a heartbeat (X-JOIN-10, 11). Its epoch has been checked
\* already, or is not checked at all (X-JOIN-12).
JoinAsHeartbeat(g, id, inst, metadata) ==
  LET includes == IncludesOwned(g.consumer, id, metadata)
  IN [memberId |-> id, instanceId |-> inst, epoch |-> -1, includesOwned |-> includes,
      owned |-> IF includes THEN ReportedOwned(metadata) ELSE {}, full |-> TRUE]

\* The request, with the id of its member filled in.
RequestAsHeartbeat(g, r, inst, fresh) ==
  JoinAsHeartbeat(g, IF r.memberId = "" THEN fresh ELSE r.memberId, inst, r.metadata)

RequestVerdict(g, r, inst) == JoinVerdict(g, r.memberId, inst, r.metadata)

\* The replaced member was the last one that speaks the consumer protocol
\* (X-DOWN-20).
JoinDowngrades(g, inst) ==
  /\ inst \in DOMAIN g.consumer.instances
  /\ g.consumer.instances[inst] \notin DOMAIN g.subscriptions
  /\ Downgrades(g, {g.consumer.instances[inst]}, 1)

JoinApplied(g, r, inst, fresh) ==
  Consumer!ApplyVerdict(g.consumer, RequestAsHeartbeat(g, r, inst, fresh),
                        RequestVerdict(g, r, inst), Size)

\* The targets that the assignor may choose. It is not asked if the join is
\* refused or downgrades the group.
JoinTargets(g, r, inst, fresh) ==
  IF \/ g.protocol = "classic" \/ DOMAIN g.consumer.members = {}
     \/ RequestVerdict(g, r, inst) \in JoinErrors \cup {"id required"}
     \/ JoinDowngrades(g, inst)
  THEN {<< >>} ELSE TargetsOf(JoinApplied(g, r, inst, fresh))

\* The answer: the member epoch as generation, no leader, no members
\* (X-JOIN-15).
JoinAnswer(c, id, epoch) ==
  [api |-> "JoinGroup", to |-> c, error |-> "NONE", memberId |-> id,
   generation |-> epoch, leader |-> "", skipAssignment |-> FALSE, members |-> {}]

\* A member that has joined gets a sync timer (X-TMR-03).
WithSyncTimer(timers, m) == timers \cup {m}

\* A join that stays in the consumer group (X-JOIN-10..20). Classic members have
\* no rebalance timer (X-JOIN-21).
JoinConsumerGroup(g, r, inst, fresh, T) ==
  LET heartbeat == RequestAsHeartbeat(g, r, inst, fresh)
      id == heartbeat.memberId
      applied == JoinApplied(g, r, inst, fresh)
      after == Consumer!FinishHeartbeat(applied, heartbeat, RequestVerdict(g, r, inst), T)
      present == DOMAIN after.g.members
      subscribed == Put([m \in DOMAIN g.subscriptions \cap present |-> g.subscriptions[m]],
                        id, r.metadata)
      h == [g EXCEPT !.consumer = [after.g EXCEPT !.rebalanceTimers = applied.rebalanceTimers],
                     !.subscriptions = subscribed,
                     !.joinTimers = @ \ {id}, !.syncTimers = WithSyncTimer(@, id)]
  IN Reply(Outcome(WithoutOldTimers(h)), Classic!Caller(r), JoinAnswer(r.from, id, after.y.epoch))

(***************************************************************************)
(* A join that downgrades the group (X-DOWN-20..24). The joiner gets what  *)
(* the replaced member holds; if no rebalance follows, it is reconciled to *)
(* the target at once, and answered with its member epoch. Otherwise its   *)
(* request is parked. before and after are the group epochs before and     *)
(* after the request (X-DOWN-23 fixed).                                    *)
(***************************************************************************)
DowngradeByJoin(before, after, rebalances) == [generation |-> after, parks |-> rebalances]

JoinAndDowngrade(g, r, inst, fresh) ==
  LET heartbeat == RequestAsHeartbeat(g, r, inst, fresh)
      id == heartbeat.memberId
      applied == JoinApplied(g, r, inst, fresh)
      \* A rebalance must follow: a target is due, or a member lacks its own (X-DOWN-22).
      behind == \/ applied.assignmentEpoch < applied.groupEpoch
                \/ OwesPartitions(applied, DOMAIN applied.members \ {id})
      after == Consumer!FinishHeartbeat(applied, heartbeat, RequestVerdict(g, r, inst), << >>)
      epoch == IF behind THEN applied.members[id].epoch ELSE after.y.epoch
      M == DOMAIN applied.members
      h == [g EXCEPT !.consumer = IF behind THEN applied ELSE after.g,
                     !.subscriptions = Put([m \in DOMAIN @ \cap M |-> @[m]], id, r.metadata),
                     !.joinTimers = @ \ {id}]
      how == DowngradeByJoin(g.consumer.groupEpoch, applied.groupEpoch, behind)
      stable == StableClassicGroup(h, M, how.generation)
      start == Classic!Outcome(IF how.parks THEN [stable EXCEPT !.members[id].awaitingJoin =
                                                Classic!Caller(r)] ELSE stable)
      w == Downgraded(h, stable, IF behind THEN Classic!PrepareRebalance(start) ELSE start)
  IN IF how.parks THEN w ELSE Reply(w, Classic!Caller(r), JoinAnswer(r.from, id, epoch))

\* A join is refused (X-JOIN-26), gets an id first (X-JOIN-05), downgrades the group
\* (X-DOWN-20), or stays in the consumer group (X-JOIN-10).
HandleJoinToConsumerGroup(g, r, inst, fresh, T) ==
  LET verdict == RequestVerdict(g, r, inst)
      caller == Classic!Caller(r)
  IN CASE verdict \in JoinErrors ->
            Reply(Outcome(g), caller, Classic!JoinError(r.from, verdict, ""))
       [] verdict = "id required" ->
            Reply(Outcome(g), caller, Classic!JoinError(r.from, "MEMBER_ID_REQUIRED", fresh))
       [] JoinDowngrades(g, inst) -> JoinAndDowngrade(g, r, inst, fresh)
       [] OTHER -> JoinConsumerGroup(g, r, inst, fresh, T)

\* A classic group replaces an empty consumer group, and continues its count
\* (fixed) (C-JOIN-10..12, 16).
HandleJoinToEmptyGroup(g, r, inst, fresh) ==
  IF r.memberId # ""
  THEN Reply(Outcome(g), Classic!Caller(r), Classic!JoinError(r.from, "UNKNOWN_MEMBER_ID", ""))
  ELSE LET begin == ContinuedCount(g.consumer.groupEpoch)
           new == [NoClassicGroup EXCEPT !.generationId = begin]
           w == ClassicOutcome(ClassicGroup(new), Classic!HandleJoin(new, r, inst, fresh))
       IN [w EXCEPT !.app = <<[Classic!FirstRecord EXCEPT !.generationId = begin]>> \o @]

HandleJoin(g, r, inst, fresh, T) ==
  CASE g.protocol = "classic" -> ClassicOutcome(g, Classic!HandleJoin(g.classic, r, inst, fresh))
    [] DOMAIN g.consumer.members = {} -> HandleJoinToEmptyGroup(g, r, inst, fresh)
    [] OTHER -> HandleJoinToConsumerGroup(g, r, inst, fresh, T)

\* Whether answering r uses up a member id.
NeedsId(g, r, inst) ==
  /\ r.memberId = ""
  /\ g.protocol = "consumer" /\ DOMAIN g.consumer.members # {} => Policy # "disabled"

-----------------------------------------------------------------------------
(***************************************************************************)
(* SyncGroup, Heartbeat, LeaveGroup to a consumer group (9.4).             *)
(***************************************************************************)

\* The error that refuses the request, or "" if it passes (X-SYNC-01, 02, 03 and
\* X-HB-01).
ClassicMemberError(g, id, inst, generation) ==
  LET instances == g.consumer.instances
  IN CASE inst # "" /\ inst \notin DOMAIN instances -> "UNKNOWN_MEMBER_ID"
       [] inst # "" /\ instances[inst] # id         -> "FENCED_INSTANCE_ID"
       [] id \notin DOMAIN g.subscriptions          -> "UNKNOWN_MEMBER_ID"
       [] generation # g.consumer.members[id].epoch -> "ILLEGAL_GENERATION"
       [] OTHER -> ""

\* A target would be computed if a member asked (LIV-14 fixed).
TargetIsDue(h) == Consumer!MustComputeTarget(h)

\* There is a target that m has not been reconciled with, or one is due (X-SYNC-05,
\* X-HB-03).
IsBehind(g, m) ==
  LET h == g.consumer
  IN \/ h.members[m].epoch < h.assignmentEpoch
     \/ TargetIsDue(h)

\* Other members have given up everything that m waits for (X-HB-03).
CanGetMore(g, m) ==
  LET h == g.consumer
  IN /\ h.members[m].state = "UNRELEASED"
     /\ \A p \in Consumer!Stored(h, m) \ DOMAIN h.members[m].assigned :
          Consumer!IsFree(h, p)

\* m has to rejoin: it lags, or must revoke, or can have more (X-HB-03,
\* X-HB-07).
MustRejoin(g, m) ==
  IsBehind(g, m) \/ g.consumer.members[m].state = "UNREVOKED" \/ CanGetMore(g, m)

\* The partitions that SyncGroup returns to a classic member: A (X-SYNC-06).
SyncAssignment(g, m) == DOMAIN g.consumer.members[m].assigned

\* A lagging member must join first, unless it has to learn what to revoke
\* (X-SYNC-05).
MustJoinBeforeSync(g, m) == IsBehind(g, m) /\ g.consumer.members[m].state # "UNREVOKED"

\* A member that is asked to rejoin gets a join timer (X-TMR-02).
WithJoinTimer(timers, m) == timers \cup {m}

\* A SyncGroup is refused, answered with REBALANCE_IN_PROGRESS, or with A
\* (X-SYNC-01..06).
HandleSyncToConsumerGroup(g, r, inst) ==
  LET id == r.memberId
      error == ClassicMemberError(g, id, inst, r.generation)
      Answer(h, e, a) == Reply(Outcome(h), Classic!Caller(r), Classic!SyncReply(r.from, e, a))
  IN CASE error # "" -> Answer(g, error, {})
       [] MustJoinBeforeSync(g, id) ->
            Answer([g EXCEPT !.joinTimers = WithJoinTimer(@, id)], "REBALANCE_IN_PROGRESS", {})
       [] OTHER ->
            Answer([g EXCEPT !.syncTimers = @ \ {id},
                             !.consumer.sessionTimers = @ \cup {id}],
                   "NONE", SyncAssignment(g, id))

HandleSync(g, r, inst) ==
  IF g.protocol = "classic" THEN ClassicOutcome(g, Classic!HandleSync(g.classic, r, inst, << >>))
  ELSE HandleSyncToConsumerGroup(g, r, inst)

\* A heartbeat of a classic client: the group afterwards, and the answer
\* (C-HB-05..12, X-HB-01..05).
HandleClassicHeartbeat(g, id, inst, generation) ==
  LET classic == Classic!HeartbeatError(g.classic, id, inst, generation)
      known == classic \in {"NONE", "REBALANCE_IN_PROGRESS"}
      fence == ClassicMemberError(g, id, inst, generation)
      mustRejoin == MustRejoin(g, id)
  IN CASE g.protocol = "classic" ->
            [g |-> IF known THEN [g EXCEPT !.classic.sessionTimers = @ \cup {id}] ELSE g,
             error |-> classic]
       [] fence # "" -> [g |-> g, error |-> fence]
       [] OTHER ->
            [g |-> [g EXCEPT !.consumer.sessionTimers = @ \cup {id},
                             !.joinTimers = IF mustRejoin THEN WithJoinTimer(@, id) ELSE @],
             error |-> IF mustRejoin THEN "REBALANCE_IN_PROGRESS" ELSE "NONE"]

\* A leave by member id (C-LEAVE-12..22, X-LEAVE-01..05).
HandleLeaveGroup(g, id) ==
  CASE g.protocol = "classic" -> ClassicOutcome(g, Classic!HandleLeave(g.classic, id))
    [] id \in DOMAIN g.consumer.members -> RemoveMember(g, id)
    [] OTHER -> Outcome(g)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Timers and fail-over.                                                   *)
(***************************************************************************)
SessionTimers(g) ==
  IF g.protocol = "classic" THEN g.classic.sessionTimers ELSE g.consumer.sessionTimers

\* The session timer of m fires (C-TMR-06..09, M-TMR-01, X-TMR-01).
SessionExpired(g, m) ==
  IF g.protocol = "classic" THEN ClassicOutcome(g, Classic!SessionExpired(g.classic, m))
  ELSE RemoveMember(g, m)

\* The rebalance timer fences its member only if the epoch is still that at
\* arming (M-TMR-02).
RebalanceExpired(g, m) ==
  IF /\ m \in DOMAIN g.consumer.members
     /\ g.consumer.members[m].epoch = g.consumer.rebalanceTimers[m]
  THEN RemoveMember(g, m)
  ELSE Outcome([g EXCEPT !.consumer.rebalanceTimers = Without(@, {m})])

\* The join timer fences its member (X-TMR-02). It may also be left over from
\* one (X-DOWN-33).
JoinExpired(g, m) ==
  IF m \in DOMAIN g.consumer.members THEN RemoveMember(g, m)
  ELSE Outcome([g EXCEPT !.joinTimers = @ \ {m}])

\* The sync timer fences its member (X-TMR-03).
SyncExpired(g, m) ==
  IF m \in DOMAIN g.consumer.members THEN RemoveMember(g, m)
  ELSE Outcome([g EXCEPT !.syncTimers = @ \ {m}])

\* The classic members of a loaded consumer group keep their metadata (X-UP-05,
\* F-REPLAY-01).
LoadedSubscriptions(l) == l.subscriptions

\* The group that a new coordinator loads; join and sync timers are not restored
\* (F-LOAD-01, X-TMR-04).
Loaded(l, blocked) ==
  IF l.protocol = "classic" THEN ClassicGroup(Classic!Loaded(l.classic))
  ELSE ConsumerGroup(Consumer!Loaded(l.consumer, blocked), LoadedSubscriptions(l))
=============================================================================
