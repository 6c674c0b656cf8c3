----------------------------- MODULE MixedSystem ----------------------------
(***************************************************************************)
(* The variables, and what the two protocols do: clients, coordinator,     *)
(* timers. MixedGroup has what happens to them.                            *)
(***************************************************************************)
EXTENDS MixedCoordinator, MixedClient, Environment

ASSUME Allowed \subseteq
  {"ClientStarts", "ClientCrashes", "ClientLeaves", "ClientGivesUp", "ClientCommits",
   "RequestLost", "RequestDuplicated", "ReplyLost", "JoinTimerFiresEarly",
   "SyncTimerFiresEarly", "SessionTimerFiresEarly", "RebalanceTimerFiresEarly",
   "MemberJoinTimerFiresEarly", "MemberSyncTimerFiresEarly", "CoordinatorFailsOver"}

VARIABLE group     \* the coordinator's memory
TypeGroup == IsGroup(group)

VARIABLE log       \* what is replicated: what a new coordinator loads
TypeLog == IsLog(log)

VARIABLE idsUsed   \* how many member ids were taken
TypeIdsUsed == idsUsed \in 0..Len(MemberIds)

VARIABLE classic   \* the processes that speak the classic protocol
TypeClassic == classic \in [Clients -> ClassicMember!Client]

VARIABLE consumer  \* the processes that speak the consumer protocol; a client runs at most one process
TypeConsumer ==
  /\ consumer \in [Clients -> ConsumerMember!Client]
  /\ \A c \in Clients : "down" \in {classic[c].state, consumer[c].state}

TypeRequests == \A r \in requests : IsRequest(r)

TypeReplies == \A y \in replies : IsReply(y)

vars == <<group, log, idsUsed, classic, consumer, requests, replies, faultsLeft>>
broker  == <<group, log>>
clients == <<classic, consumer>>

EveryVariableHasItsType ==
  /\ TypeGroup /\ TypeLog /\ TypeIdsUsed /\ TypeClassic /\ TypeConsumer
  /\ TypeRequests /\ TypeReplies /\ TypeFaultsLeft

Init ==
  /\ group = ClassicGroup(NoClassicGroup)
  /\ log = ClassicLog(Classic!FirstRecord)
  /\ idsUsed = 0
  /\ classic = [c \in Clients |-> ClassicMember!Ended("down")]
  /\ consumer = [c \in Clients |-> ConsumerMember!Ended("down")]
  /\ requests = {}
  /\ replies = {}
  /\ faultsLeft = AllFaultsLeft

-----------------------------------------------------------------------------
(***************************************************************************)
(* Parts of actions.                                                       *)
(***************************************************************************)
LoggedAfter(w) ==
  CASE w.g.protocol = "consumer" -> ConsumerLog(w.g)
    [] w.app # << >> -> ClassicLog(w.app[Len(w.app)])
    [] OTHER -> log

\* The coordinator has acted; w is the result, replicated at once.
OutcomeApplied(w) ==
  /\ group' = w.g
  /\ log' = LoggedAfter(w)
  /\ replies' = replies \cup w.out

AnswersTo(r, y) == IF r.awaited THEN {Consumer!To(r.from, y)} ELSE {}

\* c stops waiting: the answer to its request, when it comes, does not reach it.
StopWaiting(c, more) ==
  /\ group' = [group EXCEPT !.classic = Classic!WithoutListener(@, c)]
  /\ StopListening(c, more)
  /\ UNCHANGED <<log, idsUsed>>

IsWaiting(c) == classic[c].state \in {"joining", "syncing"} \/ consumer[c].waiting

\* An answer to c may still come.
ExpectsAnswer(c) == IsInFlight(c) \/ Classic!IsParked(group.classic, c)

\* c after it stopped waiting (K-ERR-13, N-ERR-06).
ResumeClient(c) ==
  /\ classic' = [classic EXCEPT ![c].state = IF @ \in {"joining", "syncing"}
                                             THEN "unjoined" ELSE @]
  /\ consumer' = [consumer EXCEPT ![c] = IF @.waiting THEN ConsumerMember!AfterNoAnswer(@)
                                         ELSE @]

(***************************************************************************)
(* No client holds the id or will learn it from an answer, so it will      *)
(* never send anything again. The timer of an abandoned id is sure to      *)
(* fire. That of a live client fires early only by a fault of the          *)
(* environment.                                                            *)
(***************************************************************************)
IsAbandoned(m) ==
  /\ \A c \in Clients : classic[c].memberId # m /\ consumer[c].memberId # m
  /\ \A y \in replies : y.api = "JoinGroup" => y.memberId # m
  /\ m \in DOMAIN group.classic.members =>
       /\ group.classic.members[m].awaitingJoin \notin Clients
       /\ group.classic.members[m].awaitingSync \notin Clients

JoinTimerIsDue ==
  LET g == group.classic
  IN \/ g.initial
     \/ \A m \in (DOMAIN g.members \ Classic!Joined(g)) \cup g.pendingJoin : IsAbandoned(m)
SyncTimerIsDue == \A m \in group.classic.pendingSync : IsAbandoned(m)

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: clients of the classic protocol.                                *)
(***************************************************************************)

\* A classic client that runs and waits for nothing prepares its join
\* (K-CB-02..04) and sends JoinGroup (K-ST-10).
ClientSendsJoin(c) ==
  /\ classic[c].state = "unjoined"
  /\ LET p == ClassicMember!AfterJoinPrepare(classic[c])
     IN /\ classic' = [classic EXCEPT ![c] = [p EXCEPT !.state = "joining"]]
        /\ requests' = requests \cup
             {Classic!JoinRequest(c, p.memberId, ClassicMember!JoinMetadata(p))}
  /\ UNCHANGED <<broker, idsUsed, consumer, replies, faultsLeft>>

\* A classic client receives the answer to its JoinGroup (K-ERR-01..10). If it
\* is NONE, the client sends SyncGroup, as leader with an assignment.
ClientReceivesJoinReply ==
  /\ \E y \in {z \in replies : z.api = "JoinGroup"} :
       LET c == y.to
           p == AfterJoinReply(classic[c], y)
           leads == y.memberId = y.leader /\ ~y.skipAssignment
           Sync(a) == Classic!SyncRequest(c, p.memberId, p.generation, a)
       IN /\ replies' = replies \ {y}
          /\ classic' = [classic EXCEPT ![c] = p]
          /\ \E a \in IF y.error = "NONE" /\ leads
                      THEN ClassicMember!Assignments(y.members) ELSE {{}} :
               requests' = IF y.error = "NONE" THEN requests \cup {Sync(a)} ELSE requests
  /\ UNCHANGED <<broker, idsUsed, consumer, faultsLeft>>

\* A classic client receives the answer to its SyncGroup and takes its
\* assignment (K-ST-12, K-CB-05, 06), or handles the error (K-ERR-03..08).
ClientReceivesSyncReply ==
  /\ \E y \in {z \in replies : z.api = "SyncGroup"} :
       /\ replies' = replies \ {y}
       /\ classic' = [classic EXCEPT ![y.to] = AfterSyncReply(@, y)]
  /\ UNCHANGED <<broker, idsUsed, consumer, requests, faultsLeft>>

\* The result of a heartbeat of the classic client c.
ClassicHeartbeat(c) ==
  HandleClassicHeartbeat(group, classic[c].memberId, InstanceOf[c], classic[c].generation)

ClassicHeartbeatHasEffect(c) ==
  /\ classic[c].state = "stable"
  /\ ClassicHeartbeat(c).error # "NONE" \/ ClassicHeartbeat(c).g # group

\* A stable classic client heartbeats, if that changes anything: request, check
\* and answer in one step (C-HB-05..12, X-HB-01..05).
ClientHeartbeats(c) ==
  /\ ClassicHeartbeatHasEffect(c)
  /\ group' = ClassicHeartbeat(c).g
  /\ classic' = IF ClassicHeartbeat(c).error = "NONE" THEN classic
                ELSE [classic EXCEPT ![c] = AfterClassicError(@, ClassicHeartbeat(c).error)]
  /\ UNCHANGED <<log, idsUsed, consumer, net, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: clients of the consumer protocol.                               *)
(***************************************************************************)

\* Whether the next heartbeat would bring news, or change something, now. One
\* that would do neither is not a step: sent now or later, it is the same.
\* Neither is a join whose only answer is to try again (N-ERR-03).
ConsumerHeartbeatHasEffect(c) ==
  LET p == consumer[c]
      r == ConsumerMember!NextHeartbeat(c, p)
      upToDate == p.state = "member" /\ ~p.unsure /\ ~p.unacknowledged
  IN \E T \in HeartbeatTargets(group, r) :
       LET h == HandleHeartbeat(group, r, T)
       IN CASE upToDate -> \/ h.y.error # "NONE" \/ h.y.includesAssignment \/ h.y.epoch # p.epoch
                           \/ LoggedAfter(h.w) # log
            [] OTHER -> h.y.error # "COORDINATOR_LOAD_IN_PROGRESS" \/ h.w # Outcome(group)

CanSendHeartbeat(c) ==
  /\ consumer[c].state \in {"joining", "member"}
  /\ ~consumer[c].waiting
  /\ ConsumerHeartbeatHasEffect(c)

\* A consumer client that waits for no answer, and has something to report or to
\* learn, sends a heartbeat: to join, in full, with what it owns, or bare.
ClientSendsHeartbeat(c) ==
  /\ CanSendHeartbeat(c)
  /\ consumer' = [consumer EXCEPT ![c] = ConsumerMember!AfterSending(@)]
  /\ requests' = requests \cup {ConsumerMember!NextHeartbeat(c, consumer[c])}
  /\ UNCHANGED <<broker, idsUsed, classic, replies, faultsLeft>>

\* A consumer client receives the answer to its heartbeat (N-TR-02..06, N-ERR).
ClientReceivesReply ==
  /\ \E y \in {z \in replies : ~IsClassic(z)} :
       /\ replies' = replies \ {y}
       /\ consumer' = [consumer EXCEPT ![y.to] = AfterHeartbeatReply(@, y)]
  /\ UNCHANGED <<broker, idsUsed, classic, requests, faultsLeft>>

\* The application runs the callbacks for a new assignment: it gives up the
\* revoked partitions and takes the added ones (N-REC-06..08).
ClientReconciles(c) ==
  /\ consumer[c].reconciling
  /\ consumer' = [consumer EXCEPT ![c] = ConsumerMember!AfterCallbacks(@)]
  /\ UNCHANGED <<broker, idsUsed, classic, net, faultsLeft>>

\* A client of either protocol stops waiting for an answer that cannot come any
\* more (K-ERR-13, N-ERR-06).
ClientTimesOut(c) ==
  /\ IsWaiting(c)
  /\ ~ExpectsAnswer(c)
  /\ ResumeClient(c)
  /\ StopWaiting(c, {})
  /\ UNCHANGED faultsLeft

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinator.                                                    *)
(***************************************************************************)

\* The coordinator handles a JoinGroup by section 3 of the rules, or by 9.3,
\* which may downgrade the group. If that takes a new member id, there must be
\* one left.
CoordinatorHandlesJoin ==
  /\ \E r \in {q \in requests : q.api = "JoinGroup"} :
       LET inst == InstanceOf[r.from]
           new  == IF NeedsId(group, r, inst) THEN 1 ELSE 0
           fresh == IF new = 1 THEN MemberIds[idsUsed + 1] ELSE ""
       IN /\ Deliverable(requests, r)
          /\ idsUsed + new <= Len(MemberIds)
          /\ idsUsed' = idsUsed + new
          /\ requests' = requests \ {r}
          /\ \E T \in JoinTargets(group, r, inst, fresh) :
               OutcomeApplied(HandleJoin(group, r, inst, fresh, T))
  /\ UNCHANGED <<clients, faultsLeft>>

\* The coordinator handles a SyncGroup (C-SYNC-05..19, X-SYNC).
CoordinatorHandlesSync ==
  /\ \E r \in {q \in requests : q.api = "SyncGroup"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ OutcomeApplied(HandleSync(group, r, InstanceOf[r.from]))
  /\ UNCHANGED <<idsUsed, clients, faultsLeft>>

\* The coordinator handles a LeaveGroup (C-LEAVE-12..22, X-LEAVE).
CoordinatorHandlesLeaveGroup ==
  /\ \E r \in {q \in requests : q.api = "LeaveGroup"} :
       /\ requests' = requests \ {r}
       /\ OutcomeApplied(HandleLeaveGroup(group, r.memberId))
  /\ UNCHANGED <<idsUsed, clients, faultsLeft>>

\* The coordinator handles a heartbeat of the consumer protocol by sections 7.3
\* to 7.6 of the rules, or converts the group first (9.2).
CoordinatorHandlesHeartbeat ==
  /\ \E r \in {q \in requests : ~IsClassic(q)} :
       /\ r.epoch >= 0
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ \E T \in HeartbeatTargets(group, r) :
            LET h == HandleHeartbeat(group, r, T)
            IN OutcomeApplied([h.w EXCEPT !.out = @ \cup AnswersTo(r, h.y)])
  /\ UNCHANGED <<idsUsed, clients, faultsLeft>>

\* The coordinator handles a leave heartbeat (M-LEAVE-01..05), which may
\* downgrade the group (X-DOWN-01..06).
CoordinatorHandlesLeave ==
  /\ \E r \in {q \in requests : ~IsClassic(q)} :
       /\ r.epoch < 0
       /\ requests' = requests \ {r}
       /\ OutcomeApplied(HandleLeave(group, r))
  /\ UNCHANGED <<idsUsed, clients, faultsLeft>>

\* The assignment interval ends (M-TGT-08).
IntervalPasses ==
  /\ group.consumer.blocked
  /\ group' = [group EXCEPT !.consumer.blocked = FALSE]
  /\ UNCHANGED <<log, idsUsed, clients, net, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: timers.                                                         *)
(***************************************************************************)

\* A timer has fired; w is the result.
TimerOutcomeApplied(w) == OutcomeApplied(w) /\ UNCHANGED <<idsUsed, clients, requests>>

\* The join timer of a classic group fires, in the initial delay or when all
\* missing members are abandoned. It ends the join phase (C-JOIN-44).
JoinTimerFires ==
  /\ group.classic.joinTimer
  /\ JoinTimerIsDue
  /\ TimerOutcomeApplied(ClassicOutcome(group, Classic!JoinExpired(group.classic)))
  /\ UNCHANGED faultsLeft

\* The sync timer of a classic group fires when every pending sync is abandoned.
\* It removes those members and starts a rebalance (C-SYNC-20).
SyncTimerFires ==
  /\ group.classic.syncTimer
  /\ SyncTimerIsDue
  /\ TimerOutcomeApplied(ClassicOutcome(group, Classic!SyncExpired(group.classic)))
  /\ UNCHANGED faultsLeft

\* The session timer of an abandoned id m fires (C-TMR-06..09, M-TMR-01).
SessionTimerFires(m) ==
  /\ m \in SessionTimers(group)
  /\ IsAbandoned(m)
  /\ TimerOutcomeApplied(SessionExpired(group, m))
  /\ UNCHANGED faultsLeft

\* The rebalance timer of an abandoned member m fires (M-TMR-02).
RebalanceTimerFires(m) ==
  /\ m \in DOMAIN group.consumer.rebalanceTimers
  /\ IsAbandoned(m)
  /\ TimerOutcomeApplied(RebalanceExpired(group, m))
  /\ UNCHANGED faultsLeft

\* The join timer of m, an abandoned classic member of a consumer group, fences
\* it (X-TMR-02).
MemberJoinTimerFires(m) ==
  /\ m \in group.joinTimers
  /\ IsAbandoned(m)
  /\ TimerOutcomeApplied(JoinExpired(group, m))
  /\ UNCHANGED faultsLeft

\* The sync timer of an abandoned classic member m fences it (X-TMR-03).
MemberSyncTimerFires(m) ==
  /\ m \in group.syncTimers
  /\ IsAbandoned(m)
  /\ TimerOutcomeApplied(SyncExpired(group, m))
  /\ UNCHANGED faultsLeft
=============================================================================
