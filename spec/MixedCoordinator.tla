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

\* A new group continues the count of the empty one (M-VAL-22 fixed).
NewConsumerGroup(g) ==
  LET begin == IF fault_empty_group_counts_anew \/ g.generationId = 0
               THEN NoConsumerGroup.groupEpoch ELSE g.generationId
  IN [NoConsumerGroup EXCEPT !.groupEpoch = begin, !.assignmentEpoch = begin]

\* The consumer group that the heartbeat finds: an empty classic group is
\* replaced by a new one (M-VAL-22); one with members is converted first
\* (X-UP-01).
Grounds(g, r) ==
  CASE g.protocol = "consumer" -> g
    [] g.classic.state = "Empty" -> ConsumerGroup(NewConsumerGroup(g.classic), << >>)
    [] OTHER -> Upgraded(g.classic)

Converts(g) == g.protocol = "classic" /\ g.classic.state # "Empty"

\* An upgrade always bumps, once (X-UP-15 fixed).
Rebumped(g, h) ==
  IF Converts(g) /\ ~fault_upgrade_without_bump
     /\ h.groupEpoch = Upgraded(g.classic).consumer.groupEpoch
  THEN [h EXCEPT !.groupEpoch = @ + 1] ELSE h

\* The consumer group just before reconciliation, except for the target.
HeartbeatPlaced(g, r) ==
  LET grounds == Grounds(g, r)
      verdict == HeartbeatVerdict(grounds, r)
  IN Rebumped(g, Consumer!Placed(grounds.consumer, r, verdict, Size))

\* The error if the group does not take heartbeats, or "" (X-UP-02, X-UP-07,
\* M-VAL-24).
HeartbeatRefusal(g, r) ==
  CASE g.protocol = "consumer" -> ""
    [] r.epoch # 0 -> "GROUP_ID_NOT_FOUND"
    [] g.classic.state = "Empty" -> ""
    [] ~MayUpgrade -> "GROUP_ID_NOT_FOUND"
    [] HasNoProtocol(g.classic) ->
         IF fault_upgrade_without_protocol THEN "UNKNOWN_SERVER_ERROR"
         ELSE "COORDINATOR_LOAD_IN_PROGRESS"
    [] OTHER -> ""

TargetsOf(h) == IF Consumer!Computes(h) THEN Consumer!Targets(h, Size) ELSE {<< >>}

HeartbeatTargets(g, r) ==
  IF HeartbeatRefusal(g, r) # ""
     \/ HeartbeatVerdict(Grounds(g, r), r) \in Consumer!Errors
  THEN {<< >>} ELSE TargetsOf(HeartbeatPlaced(g, r))

\* Join and sync timers end with the member, or when it changes its protocol
\* (M-STATIC-10): they would find no member.
Tidy(g) ==
  [g EXCEPT !.joinTimers = @ \cap DOMAIN g.subscriptions,
            !.syncTimers = @ \cap DOMAIN g.subscriptions]

\* The answers that an upgrade releases, and the group without them.
ReleasedBy(g) == IF Converts(g) THEN Released(g.classic) ELSE Classic!World(g.classic)

RefusedHeartbeat(g, error) ==
  LET early == /\ fault_upgrade_answers_before_checks
               /\ error \in {"UNKNOWN_SERVER_ERROR", "COORDINATOR_LOAD_IN_PROGRESS"}
      freed == ReleasedBy(g)
  IN [w |-> IF early THEN [World([g EXCEPT !.classic = freed.g]) EXCEPT !.out = freed.out]
            ELSE World(g),
      y |-> Consumer!Error(error)]

\* A heartbeat r and its answer (M-HB-01..11, X-UP-03..11).
GetHeartbeat(g, r, T) ==
  LET grounds == Grounds(g, r)
      verdict == HeartbeatVerdict(grounds, r)
      after == Consumer!BeatFrom(HeartbeatPlaced(g, r), r, verdict, T)
      there == DOMAIN after.g.members
      joined == [grounds EXCEPT
                   !.consumer = after.g,
                   !.subscriptions = [m \in (DOMAIN @ \cap there) \ {r.memberId} |-> @[m]],
                   !.joinTimers = g.joinTimers, !.syncTimers = g.syncTimers]
  IN IF HeartbeatRefusal(g, r) # ""
     THEN RefusedHeartbeat(g, HeartbeatRefusal(g, r))
     ELSE IF verdict \in Consumer!Errors
     THEN [w |-> World(g), y |-> Consumer!Error(verdict)]
     ELSE [w |-> [World(Tidy(joined)) EXCEPT !.out = ReleasedBy(g).out], y |-> after.y]

\* A leave heartbeat (M-LEAVE-02..05), for whose answer no client waits.
GetLeave(g, r) ==
  LET holder == IF r.instanceId = "" THEN r.memberId
                ELSE IF r.instanceId \in DOMAIN g.consumer.instances
                THEN g.consumer.instances[r.instanceId] ELSE ""
  IN CASE g.protocol = "classic" -> World(g)              \* refused (M-VAL-24)
       [] holder # r.memberId \/ holder \notin DOMAIN g.consumer.members -> World(g)
       [] r.epoch = -2 -> World([g EXCEPT !.consumer = Consumer!Away(@, holder)])
       [] OTHER -> Gone(g, holder)

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
JoinsInStep(h, id, metadata) ==
  LET there == id \in DOMAIN h.members
  IN \/ there /\ metadata.generation = h.members[id].epoch
     \/ there /\ MissedAnAnswer(h.members[id], metadata)
     \/ /\ metadata.generation = -1
        /\ metadata.owned \subseteq IF there THEN Consumer!Holding(h.members[id]) ELSE {}

IsOutOfStep(g, id, metadata) ==
  ~fault_join_generation_ignored /\ id # "" /\ ~JoinsInStep(g.consumer, id, metadata)

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
SaidToBeOwned(metadata) == metadata.owned

\* The list of a member that has missed an answer confirms nothing (M-REC-18).
TellsOwned(h, id, metadata) ==
  \/ fault_join_generation_ignored
  \/ id \notin DOMAIN h.members
  \/ ~MissedAnAnswer(h.members[id], metadata)

\* The join, written as a heartbeat (X-JOIN-10, 11). Its epoch has been checked
\* already, or is not checked at all (X-JOIN-12).
Said(g, id, inst, metadata) ==
  LET tells == TellsOwned(g.consumer, id, metadata)
  IN [memberId |-> id, instanceId |-> inst, epoch |-> -1, tellsOwned |-> tells,
      owned |-> IF tells THEN SaidToBeOwned(metadata) ELSE {}, full |-> TRUE]

\* The request, with the id of its member filled in.
Asked(g, r, inst, fresh) ==
  Said(g, IF r.memberId = "" THEN fresh ELSE r.memberId, inst, r.metadata)

VerdictOf(g, r, inst) == JoinVerdict(g, r.memberId, inst, r.metadata)

\* The replaced member was the last one that speaks the consumer protocol
\* (X-DOWN-20).
JoinDowngrades(g, inst) ==
  /\ inst \in DOMAIN g.consumer.instances
  /\ g.consumer.instances[inst] \notin DOMAIN g.subscriptions
  /\ Downgrades(g, {g.consumer.instances[inst]}, 1)

JoinPlaced(g, r, inst, fresh) ==
  Consumer!Placed(g.consumer, Asked(g, r, inst, fresh), VerdictOf(g, r, inst), Size)

\* The targets that the assignor may choose. It is not asked if the join is
\* refused or downgrades the group.
JoinTargets(g, r, inst, fresh) ==
  IF \/ g.protocol = "classic" \/ DOMAIN g.consumer.members = {}
     \/ VerdictOf(g, r, inst) \in JoinErrors \cup {"id required"}
     \/ JoinDowngrades(g, inst)
  THEN {<< >>} ELSE TargetsOf(JoinPlaced(g, r, inst, fresh))

\* The answer: the member epoch as generation, no leader, no members
\* (X-JOIN-15).
JoinedAt(c, id, epoch) ==
  [api |-> "JoinGroup", to |-> c, error |-> "NONE", memberId |-> id,
   generation |-> epoch, leader |-> "", skipAssignment |-> FALSE, members |-> {}]

\* A join that stays in the consumer group (X-JOIN-10..20). Classic members have
\* no rebalance timer (X-JOIN-21).
Joined(g, r, inst, fresh, T) ==
  LET said == Asked(g, r, inst, fresh)
      id == said.memberId
      placed == JoinPlaced(g, r, inst, fresh)
      after == Consumer!BeatFrom(placed, said, VerdictOf(g, r, inst), T)
      there == DOMAIN after.g.members
      subscribed == Put([m \in DOMAIN g.subscriptions \cap there |-> g.subscriptions[m]],
                        id, r.metadata)
      h == [g EXCEPT !.consumer = [after.g EXCEPT !.rebalanceTimers = placed.rebalanceTimers],
                     !.subscriptions = subscribed,
                     !.joinTimers = @ \ {id}, !.syncTimers = @ \cup {id}]
  IN Reply(World(Tidy(h)), Classic!Caller(r), JoinedAt(r.from, id, after.y.epoch))

(***************************************************************************)
(* A join that downgrades the group (X-DOWN-20..24). The joiner gets what  *)
(* the replaced member holds; if no rebalance follows, it is reconciled to *)
(* the target at once. Kafka answers the joiner immediately with its       *)
(* member epoch, and starts from the generation before the request; the    *)
(* intended protocol parks it.                                             *)
(***************************************************************************)
JoinedAsLast(g, r, inst, fresh) ==
  LET said == Asked(g, r, inst, fresh)
      id == said.memberId
      placed == JoinPlaced(g, r, inst, fresh)
      behind == \/ placed.assignmentEpoch < placed.groupEpoch   \* (X-DOWN-22)
                \/ Owes(placed, DOMAIN placed.members \ {id})
      after == Consumer!BeatFrom(placed, said, VerdictOf(g, r, inst), << >>)
      epoch == IF behind THEN placed.members[id].epoch ELSE after.y.epoch
      M == DOMAIN placed.members
      h == [g EXCEPT !.consumer = IF behind THEN placed ELSE after.g,
                     !.subscriptions = Put([m \in DOMAIN @ \cap M |-> @[m]], id, r.metadata),
                     !.joinTimers = @ \ {id}]
      stable == Stable(h, M, IF fault_downgrade_loses_bump THEN g.consumer.groupEpoch
                             ELSE placed.groupEpoch)
      parks == behind /\ ~fault_downgrade_loses_bump
      start == Classic!World(IF parks THEN [stable EXCEPT !.members[id].awaitingJoin =
                                              Classic!Caller(r)] ELSE stable)
      w == Downgraded(h, stable, IF behind THEN Classic!PrepareRebalance(start) ELSE start)
  IN IF parks THEN w ELSE Reply(w, Classic!Caller(r), JoinedAt(r.from, id, epoch))

GetJoinToConsumer(g, r, inst, fresh, T) ==
  LET verdict == VerdictOf(g, r, inst)
      caller == Classic!Caller(r)
  IN CASE verdict \in JoinErrors ->
            Reply(World(g), caller, Classic!JoinError(r.from, verdict, ""))  \* (X-JOIN-26)
       [] verdict = "id required" ->                                         \* (X-JOIN-05)
            Reply(World(g), caller, Classic!JoinError(r.from, "MEMBER_ID_REQUIRED", fresh))
       [] JoinDowngrades(g, inst) -> JoinedAsLast(g, r, inst, fresh)
       [] OTHER -> Joined(g, r, inst, fresh, T)

\* A classic group replaces an empty consumer group, and continues its count
\* (fixed) (C-JOIN-10..12, 16).
GetJoinToNobody(g, r, inst, fresh) ==
  IF r.memberId # ""
  THEN Reply(World(g), Classic!Caller(r), Classic!JoinError(r.from, "UNKNOWN_MEMBER_ID", ""))
  ELSE LET begin == IF fault_empty_group_counts_anew THEN 0 ELSE g.consumer.groupEpoch
           new == [NoClassicGroup EXCEPT !.generationId = begin]
           w == ClassicWorld(ClassicGroup(new), Classic!GetJoin(new, r, inst, fresh))
       IN [w EXCEPT !.app = <<[Classic!FirstRecord EXCEPT !.generationId = begin]>> \o @]

GetJoin(g, r, inst, fresh, T) ==
  CASE g.protocol = "classic" -> ClassicWorld(g, Classic!GetJoin(g.classic, r, inst, fresh))
    [] DOMAIN g.consumer.members = {} -> GetJoinToNobody(g, r, inst, fresh)
    [] OTHER -> GetJoinToConsumer(g, r, inst, fresh, T)

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
ClassicFence(g, id, inst, generation) ==
  LET instances == g.consumer.instances
  IN CASE inst # "" /\ inst \notin DOMAIN instances -> "UNKNOWN_MEMBER_ID"
       [] inst # "" /\ instances[inst] # id         -> "FENCED_INSTANCE_ID"
       [] id \notin DOMAIN g.subscriptions          -> "UNKNOWN_MEMBER_ID"
       [] generation # g.consumer.members[id].epoch -> "ILLEGAL_GENERATION"
       [] OTHER -> ""

\* There is a target that m has not been reconciled with (X-SYNC-05, X-HB-03),
\* or one would be computed if a member asked (LIV-14 fixed).
Lags(g, m) ==
  LET h == g.consumer
  IN \/ h.members[m].epoch < h.assignmentEpoch
     \/ ~fault_classic_members_starve /\ Consumer!Computes(h)

\* Other members have given up everything that m waits for (X-HB-03).
CanHaveMore(g, m) ==
  LET h == g.consumer
  IN /\ h.members[m].state = "UNRELEASED"
     /\ \A p \in Consumer!Stored(h, m) \ DOMAIN h.members[m].assigned :
          Consumer!Unheld(h, p)

\* m has to rejoin: it lags, or must revoke, or can have more (X-HB-03,
\* X-HB-07).
IsToRejoin(g, m) ==
  Lags(g, m) \/ g.consumer.members[m].state = "UNREVOKED" \/ CanHaveMore(g, m)

\* The partitions that SyncGroup returns to a classic member: A (X-SYNC-06).
Granted(g, m) == DOMAIN g.consumer.members[m].assigned

\* A SyncGroup is refused, told to rejoin, or answered with A (X-SYNC-01..06).
GetSyncToConsumer(g, r, inst) ==
  LET id == r.memberId
      error == ClassicFence(g, id, inst, r.generation)
      Told(h, e, a) == Reply(World(h), Classic!Caller(r), Classic!SyncReply(r.from, e, a))
  IN CASE error # "" -> Told(g, error, {})
       [] Lags(g, id) /\ g.consumer.members[id].state # "UNREVOKED" ->
            Told([g EXCEPT !.joinTimers = @ \cup {id}], "REBALANCE_IN_PROGRESS", {})
       [] OTHER ->
            Told([g EXCEPT !.syncTimers = @ \ {id},
                           !.consumer.sessionTimers = @ \cup {id}],
                 "NONE", Granted(g, id))

GetSync(g, r, inst) ==
  IF g.protocol = "classic" THEN ClassicWorld(g, Classic!GetSync(g.classic, r, inst, << >>))
  ELSE GetSyncToConsumer(g, r, inst)

\* A heartbeat of a classic client: the group afterwards, and the answer
\* (C-HB-05..12, X-HB-01..05).
Beaten(g, id, inst, generation) ==
  LET classic == Classic!HeartbeatError(g.classic, id, inst, generation)
      known == classic \in {"NONE", "REBALANCE_IN_PROGRESS"}
      fence == ClassicFence(g, id, inst, generation)
      told == IsToRejoin(g, id)
  IN CASE g.protocol = "classic" ->
            [g |-> IF known THEN [g EXCEPT !.classic.sessionTimers = @ \cup {id}] ELSE g,
             error |-> classic]
       [] fence # "" -> [g |-> g, error |-> fence]
       [] OTHER ->
            [g |-> [g EXCEPT !.consumer.sessionTimers = @ \cup {id},
                             !.joinTimers = IF told THEN @ \cup {id} ELSE @],
             error |-> IF told THEN "REBALANCE_IN_PROGRESS" ELSE "NONE"]

\* A leave by member id (C-LEAVE-12..22, X-LEAVE-01..05).
GetLeaveGroup(g, id) ==
  CASE g.protocol = "classic" -> ClassicWorld(g, Classic!GetLeave(g.classic, id))
    [] id \in DOMAIN g.consumer.members -> Gone(g, id)
    [] OTHER -> World(g)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Timers and fail-over.                                                   *)
(***************************************************************************)
SessionTimers(g) ==
  IF g.protocol = "classic" THEN g.classic.sessionTimers ELSE g.consumer.sessionTimers

\* The session timer of m fires (C-TMR-06..09, M-TMR-01, X-TMR-01).
SessionExpired(g, m) ==
  IF g.protocol = "classic" THEN ClassicWorld(g, Classic!SessionExpired(g.classic, m))
  ELSE Gone(g, m)

\* The rebalance timer fences its member only if the epoch is still that at
\* arming (M-TMR-02).
RebalanceExpired(g, m) ==
  IF /\ m \in DOMAIN g.consumer.members
     /\ g.consumer.members[m].epoch = g.consumer.rebalanceTimers[m]
  THEN Gone(g, m)
  ELSE World([g EXCEPT !.consumer.rebalanceTimers = Without(@, {m})])

\* The join timer fences its member (X-TMR-02). It may also be left over from
\* one (X-DOWN-33).
JoinExpired(g, m) ==
  IF m \in DOMAIN g.consumer.members THEN Gone(g, m)
  ELSE World([g EXCEPT !.joinTimers = @ \ {m}])

\* The sync timer fences its member (X-TMR-03).
SyncExpired(g, m) ==
  IF m \in DOMAIN g.consumer.members THEN Gone(g, m)
  ELSE World([g EXCEPT !.syncTimers = @ \ {m}])

\* The group that a new coordinator loads; join and sync timers are not restored
\* (F-LOAD-01, X-TMR-04).
Loaded(l, blocked) ==
  IF l.protocol = "classic" THEN ClassicGroup(Classic!Loaded(l.classic))
  ELSE ConsumerGroup(Consumer!Loaded(l.consumer, blocked), l.subscriptions)
=============================================================================
