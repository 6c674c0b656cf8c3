--------------------------- MODULE MixedCoordinator -------------------------
(***************************************************************************)
(* What the coordinator makes of each request, timer and fail-over, for    *)
(* whichever group there is. Functions; no variables.                      *)
(***************************************************************************)
EXTENDS MixedConversion

(***************************************************************************)
(* ConsumerGroupHeartbeat. T is one of the targets that the assignor may   *)
(* choose, << >> where it is not asked.                                    *)
(***************************************************************************)

\* M-STATIC-03, X-UP-13: who speaks the classic protocol gives way.
HeartbeatVerdict(g, r) ==
  LET holder == g.consumer.instances[r.instanceId]
  IN IF /\ r.instanceId \in DOMAIN g.consumer.instances
        /\ r.epoch = 0 /\ holder \in DOMAIN g.subscriptions
     THEN "replaces" ELSE Consumer!Verdict(g.consumer, r)

\* M-VAL-22 mended: a new group counts on from where the empty one has stopped.
NewConsumerGroup(g) ==
  LET begin == IF fault_empty_group_counts_anew \/ g.generationId = 0
               THEN NoConsumerGroup.groupEpoch ELSE g.generationId
  IN [NoConsumerGroup EXCEPT !.groupEpoch = begin, !.assignmentEpoch = begin]

\* M-VAL-22: an empty classic group makes way for a new one, X-UP-01: one with
\* members is converted first.
Grounds(g, r) ==
  CASE g.protocol = "consumer" -> g
    [] g.classic.state = "Empty" -> ConsumerGroup(NewConsumerGroup(g.classic), << >>)
    [] OTHER -> Upgraded(g.classic)

Converts(g) == g.protocol = "classic" /\ g.classic.state # "Empty"

\* X-UP-15 mended: an upgrade always bumps, once.
Rebumped(g, h) ==
  IF Converts(g) /\ ~fault_upgrade_without_bump
     /\ h.groupEpoch = Upgraded(g.classic).consumer.groupEpoch
  THEN [h EXCEPT !.groupEpoch = @ + 1] ELSE h

\* The consumer group right before reconciliation, but for the target.
HeartbeatPlaced(g, r) ==
  LET grounds == Grounds(g, r)
      verdict == HeartbeatVerdict(grounds, r)
  IN Rebumped(g, Consumer!Placed(grounds.consumer, r, verdict, Size))

\* Why the group cannot be asked: X-UP-02, X-UP-07, M-VAL-24; "" = it can.
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

\* Those who are there no more, or have changed protocol, have no timers of
\* either kind; M-STATIC-10: they would find nobody.
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

\* M-HB-01..11, X-UP-03..11: what comes of r, and its answer.
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

\* M-LEAVE-02..05, by ConsumerGroupHeartbeat; nobody waits for the answer.
GetLeave(g, r) ==
  LET holder == IF r.instanceId = "" THEN r.memberId
                ELSE IF r.instanceId \in DOMAIN g.consumer.instances
                THEN g.consumer.instances[r.instanceId] ELSE ""
  IN CASE g.protocol = "classic" -> World(g)              \* M-VAL-24
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
(* X-JOIN-06, 10, 12 mended: a JoinGroup with a member id is looked at as  *)
(* a heartbeat would be (M-FENCE-04). The subscription says of which       *)
(* generation; if it does not, what it claims must be the member's.        *)
(***************************************************************************)
JoinsInStep(h, id, metadata) ==
  LET there == id \in DOMAIN h.members
  IN \/ there /\ metadata.generation = h.members[id].epoch
     \/ there /\ MissedAnAnswer(h.members[id], metadata)
     \/ /\ metadata.generation = -1
        /\ metadata.owned \subseteq IF there THEN Consumer!Holding(h.members[id]) ELSE {}

IsOutOfStep(g, id, metadata) ==
  ~fault_join_generation_ignored /\ id # "" /\ ~JoinsInStep(g.consumer, id, metadata)

\* X-POL-04, X-JOIN-02..08
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

\* X-JOIN-11: what is not named is given up.
SaidToBeOwned(metadata) == metadata.owned

\* M-REC-18: of who has missed an answer the list confirms nothing.
TellsOwned(h, id, metadata) ==
  \/ fault_join_generation_ignored
  \/ id \notin DOMAIN h.members
  \/ ~MissedAnAnswer(h.members[id], metadata)

\* What the join says, as a heartbeat would: X-JOIN-10, 11. Its epoch has been
\* looked at, or nobody asks for it (X-JOIN-12).
Said(g, id, inst, metadata) ==
  LET tells == TellsOwned(g.consumer, id, metadata)
  IN [memberId |-> id, instanceId |-> inst, epoch |-> -1, tellsOwned |-> tells,
      owned |-> IF tells THEN SaidToBeOwned(metadata) ELSE {}, full |-> TRUE]

\* The request with the id that it is about.
Asked(g, r, inst, fresh) ==
  Said(g, IF r.memberId = "" THEN fresh ELSE r.memberId, inst, r.metadata)

VerdictOf(g, r, inst) == JoinVerdict(g, r.memberId, inst, r.metadata)

\* X-DOWN-20: who is replaced was the last one of the consumer protocol.
JoinDowngrades(g, inst) ==
  /\ inst \in DOMAIN g.consumer.instances
  /\ g.consumer.instances[inst] \notin DOMAIN g.subscriptions
  /\ Downgrades(g, {g.consumer.instances[inst]}, 1)

JoinPlaced(g, r, inst, fresh) ==
  Consumer!Placed(g.consumer, Asked(g, r, inst, fresh), VerdictOf(g, r, inst), Size)

\* What the assignor may choose; it is not asked by who is refused or downgrades.
JoinTargets(g, r, inst, fresh) ==
  IF \/ g.protocol = "classic" \/ DOMAIN g.consumer.members = {}
     \/ VerdictOf(g, r, inst) \in JoinErrors \cup {"id required"}
     \/ JoinDowngrades(g, inst)
  THEN {<< >>} ELSE TargetsOf(JoinPlaced(g, r, inst, fresh))

\* X-JOIN-15
JoinedAt(c, id, epoch) ==
  [api |-> "JoinGroup", to |-> c, error |-> "NONE", memberId |-> id,
   generation |-> epoch, leader |-> "", skipAssignment |-> FALSE, members |-> {}]

\* X-JOIN-10..20. The rebalance timer is not for classic members (X-JOIN-21).
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
(* X-DOWN-20..24. The joiner has the target of whom it replaces, or holds  *)
(* what that one held, and if no rebalance follows is reconciled at once.  *)
(* Kafka answers it at once with its member epoch and takes the generation *)
(* from before the request; intended is that it is parked.                 *)
(***************************************************************************)
JoinedAsLast(g, r, inst, fresh) ==
  LET said == Asked(g, r, inst, fresh)
      id == said.memberId
      placed == JoinPlaced(g, r, inst, fresh)
      behind == \/ placed.assignmentEpoch < placed.groupEpoch   \* X-DOWN-22
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
            Reply(World(g), caller, Classic!JoinError(r.from, verdict, ""))  \* X-JOIN-26
       [] verdict = "id required" ->                                         \* X-JOIN-05
            Reply(World(g), caller, Classic!JoinError(r.from, "MEMBER_ID_REQUIRED", fresh))
       [] JoinDowngrades(g, inst) -> JoinedAsLast(g, r, inst, fresh)
       [] OTHER -> Joined(g, r, inst, fresh, T)

\* C-JOIN-10..12, 16: an empty consumer group is replaced by a classic one, which
\* counts on (mended).
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

\* X-SYNC-01, 02, 03 and X-HB-01; "" = goes on.
ClassicFence(g, id, inst, generation) ==
  LET instances == g.consumer.instances
  IN CASE inst # "" /\ inst \notin DOMAIN instances -> "UNKNOWN_MEMBER_ID"
       [] inst # "" /\ instances[inst] # id         -> "FENCED_INSTANCE_ID"
       [] id \notin DOMAIN g.subscriptions          -> "UNKNOWN_MEMBER_ID"
       [] generation # g.consumer.members[id].epoch -> "ILLEGAL_GENERATION"
       [] OTHER -> ""

\* X-SYNC-05, X-HB-03: there is a target that m has not been reconciled with.
\* LIV-14 mended: or there would be one, if anybody asked.
Lags(g, m) ==
  LET h == g.consumer
  IN \/ h.members[m].epoch < h.assignmentEpoch
     \/ ~fault_classic_members_starve /\ Consumer!Computes(h)

\* X-HB-03: everything that m waits for has been given up.
CanHaveMore(g, m) ==
  LET h == g.consumer
  IN /\ h.members[m].state = "UNRELEASED"
     /\ \A p \in Consumer!Stored(h, m) \ DOMAIN h.members[m].assigned :
          Consumer!Unheld(h, p)

\* X-HB-03, X-HB-07
IsToRejoin(g, m) ==
  Lags(g, m) \/ g.consumer.members[m].state = "UNREVOKED" \/ CanHaveMore(g, m)

\* X-SYNC-06: what a classic member is told to own.
Granted(g, m) == DOMAIN g.consumer.members[m].assigned

\* X-SYNC-01..06
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

\* C-HB-05..12, X-HB-01..05: the group afterwards, and what the client is told.
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

\* C-LEAVE-12..22, X-LEAVE-01..05: a leave by member id.
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

\* C-TMR-06..09, M-TMR-01, X-TMR-01
SessionExpired(g, m) ==
  IF g.protocol = "classic" THEN ClassicWorld(g, Classic!SessionExpired(g.classic, m))
  ELSE Gone(g, m)

\* M-TMR-02: only while the epoch is the one at arming.
RebalanceExpired(g, m) ==
  IF /\ m \in DOMAIN g.consumer.members
     /\ g.consumer.members[m].epoch = g.consumer.rebalanceTimers[m]
  THEN Gone(g, m)
  ELSE World([g EXCEPT !.consumer.rebalanceTimers = Without(@, {m})])

\* X-TMR-02: of a member, or left over from one (X-DOWN-33).
JoinExpired(g, m) ==
  IF m \in DOMAIN g.consumer.members THEN Gone(g, m)
  ELSE World([g EXCEPT !.joinTimers = @ \ {m}])

\* X-TMR-03
SyncExpired(g, m) ==
  IF m \in DOMAIN g.consumer.members THEN Gone(g, m)
  ELSE World([g EXCEPT !.syncTimers = @ \ {m}])

\* F-LOAD-01, X-TMR-04
Loaded(l, blocked) ==
  IF l.protocol = "classic" THEN ClassicGroup(Classic!Loaded(l.classic))
  ELSE ConsumerGroup(Consumer!Loaded(l.consumer, blocked), l.subscriptions)
=============================================================================
