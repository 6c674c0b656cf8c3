---------------------------- MODULE TraceConsumer ---------------------------
(***************************************************************************)
(* Validates a recorded trace of a consumer group (KIP-848), as            *)
(* TraceClassic does for a classic group: each step reads the next line,   *)
(* or is an action of the coordinator, its timers or its log.              *)
(*                                                                         *)
(* Each request of the trace has a separate client. All members subscribe  *)
(* to the same topics, whose partitions are numbered through.              *)
(***************************************************************************)
EXTENDS ConsumerSystem, KafkaConsumer, TraceReading

VARIABLE heard  \* member -> a time at or before which its session timer was last set
VARIABLE armed  \* member -> a time at or before which its rebalance timer was set

traceVars == <<trace, at, heard, armed>>

NoInstances == [q \in RequestNames |-> ""]  \* requests have their instance ids

-----------------------------------------------------------------------------
(***************************************************************************)
(* Targets. The trace shows a part of a target: whatever a member is       *)
(* assigned at epoch e is in its target of that epoch (INV-KIP-05).        *)
(***************************************************************************)
ShownTarget(m, epoch) ==
  UNION {Answers[q].answer.assignment : q \in {p \in DOMAIN Answers :
           /\ Answers[p].number >= at
           /\ Answers[p].answer.api = "ConsumerGroupHeartbeat"
           /\ Answers[p].answer.epoch = epoch
           /\ Requests[p].memberId = m}}

\* Of the targets of the uniform assignor, those that give each member what the trace shows (A-UHOM-04).
ShownTargets(g, n) ==
  LET shown == [m \in Members(g) |-> ShownTarget(m, g.groupEpoch) \cap Existing(n)]
      free == Existing(n) \ UNION {shown[m] : m \in Members(g)}
      TargetOf(owner) == [m \in Members(g) |-> shown[m] \cup {p \in free : owner[p] = m}]
  IN IF \E m, k \in Members(g) : m # k /\ shown[m] \cap shown[k] # {} THEN {}
     ELSE {T \in {TargetOf(owner) : owner \in [free -> Members(g)]} :
             IsBalanced(T) /\ IsSticky(g, T, n)}

TraceTargets(g, n) == IF Assignor = "uniform" THEN ShownTargets(g, n) ELSE RangeTargets(g, n)

TraceInstanceOrder == Traces[trace].instances

-----------------------------------------------------------------------------
(***************************************************************************)
(* Requests and answers.                                                   *)
(***************************************************************************)
Message(q) ==
  LET r == Requests[q]
  IN IF r.api = "OffsetCommit"
     THEN [api |-> r.api, from |-> q, awaited |-> HasAnswer(q), memberId |-> r.memberId,
           epoch |-> r.epoch, commits |-> r.partitions]
     ELSE [api |-> r.api, from |-> q, awaited |-> HasAnswer(q), memberId |-> r.memberId,
           instanceId |-> r.instanceId, epoch |-> r.epoch,
           includesOwned |-> r.includesOwned, owned |-> r.owned, full |-> r.full]

IsCommit(r) == r.api = "OffsetCommit"

\* The answer y is the one in the trace. An error has neither epoch nor assignment.
Matches(y, a) ==
  /\ y.error = a.error
  /\ a.api = "ConsumerGroupHeartbeat" /\ a.error = "NONE" =>
       /\ y.epoch = a.epoch
       /\ y.includesAssignment = a.includesAssignment
       /\ y.assignment = a.assignment

AnswersGiven == replies \cup WaitingAnswers
FitsTheTrace == \A y \in AnswersGiven' \ AnswersGiven : Matches(y, Answers[y.to].answer)

\* In a quick search, a request is handled just before its answer.
IsInTurn(r) == Search = "quick" /\ HasAnswer(r.from) => Answers[r.from].number = at
TraceDeliverable(flying, r) ==
  /\ IsNextOfConnection(r.from, {p.from : p \in flying})
  /\ IsInTurn(r)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Steps that read a line.                                                 *)
(***************************************************************************)
ReadsRequest ==
  /\ HasMoreLines
  /\ Line.type = "sent"
  /\ requests' = requests \cup {Message(Line.request)}
  /\ at' = at + 1
  /\ UNCHANGED <<broker, counters, replies, client, faultsLeft, trace, heard, armed>>

ReadsAnswer ==
  /\ IsAnswer
  /\ MissingBefore(Line.request) = {}
  /\ \E y \in replies :
       /\ y.to = Line.request
       /\ Matches(y, Answers[y.to].answer)
       /\ replies' = replies \ {y}
  /\ at' = at + 1
  /\ UNCHANGED <<broker, counters, requests, client, faultsLeft, trace, heard, armed>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Hidden steps.                                                           *)
(***************************************************************************)

\* The timers after a step; senders are the members whose heartbeat sets their session timer again
\* (M-TMR-01, M-TMR-04).
TimersFollow(senders) ==
  /\ heard' = [m \in group'.sessionTimers |->
                 IF m \in DOMAIN heard /\ m \notin senders THEN heard[m] ELSE EarliestTime]
  /\ armed' = [m \in DOMAIN group'.rebalanceTimers |->
                 IF m \in DOMAIN armed /\ group'.rebalanceTimers[m] = group.rebalanceTimers[m]
                 THEN armed[m] ELSE EarliestTime]

IsHidden(senders) ==
  /\ TimersFollow(senders)
  /\ Search # "report" => FitsTheTrace
  /\ UNCHANGED <<trace, at>>

HeartbeatIsHandled ==
  \E r \in {q \in requests : ~IsCommit(q) /\ q.epoch >= 0} :
    /\ TraceDeliverable(requests, r)
    /\ requests' = requests \ {r}
    /\ \E T \in TargetsFor(group, r, existing) :
         LET w == HandleHeartbeat(group, r, existing, T)
         IN /\ UpdateGroup(w.g, AnswersTo(r, w.y))
            /\ UNCHANGED <<counters, client, faultsLeft>>
            /\ IsHidden(IF w.y.error = "NONE" THEN {r.memberId} ELSE {})

\* The error of a leave heartbeat, which ConsumerCoordinator does not answer (M-LEAVE-01, M-LEAVE-02).
LeaveError(g, r) ==
  CASE r.instanceId # "" /\ r.instanceId \notin DOMAIN g.instances -> "UNKNOWN_MEMBER_ID"
    [] r.instanceId # "" /\ g.instances[r.instanceId] # r.memberId -> "FENCED_INSTANCE_ID"
    [] r.memberId \notin DOMAIN g.members -> "UNKNOWN_MEMBER_ID"
    [] OTHER -> "NONE"
LeaveAnswer(g, r) == [Error(LeaveError(g, r)) EXCEPT !.epoch = r.epoch]

LeaveIsHandled ==
  \E r \in {q \in requests : ~IsCommit(q) /\ q.epoch < 0} :
    /\ TraceDeliverable(requests, r)
    /\ requests' = requests \ {r}
    /\ UpdateGroup(HandleLeave(group, r, existing), AnswersTo(r, LeaveAnswer(group, r)))
    /\ UNCHANGED <<counters, client, faultsLeft>>
    /\ IsHidden({})

\* A commit at the member's epoch passes; one at an older epoch if each of its partitions was
\* assigned at that epoch (M-PE-08, O-COMMIT-30..33).
CommitError(g, r) ==
  IF r.memberId \notin DOMAIN g.members THEN "UNKNOWN_MEMBER_ID"
  ELSE LET m == g.members[r.memberId]
       IN IF \/ r.epoch = m.epoch
             \/ r.epoch < m.epoch /\ \A p \in r.commits : OlderEpochMayCommit(m, r.epoch, p)
          THEN "NONE" ELSE "STALE_MEMBER_EPOCH"

CommitIsHandled ==
  \E r \in {q \in requests : IsCommit(q)} :
    /\ TraceDeliverable(requests, r)
    /\ requests' = requests \ {r}
    /\ replies' = replies \cup AnswersTo(r, Error(CommitError(group, r)))
    /\ UNCHANGED <<broker, counters, client, faultsLeft>>
    /\ IsHidden({})

\* The broker does not lead the group, or is still loading it (F-RT-01, F-RT-02).
RequestIsTurnedAway ==
  \E r \in requests :
    /\ HasAnswer(r.from)
    /\ Answers[r.from].answer.error \in NotHere
    /\ TraceDeliverable(requests, r)
    /\ requests' = requests \ {r}
    /\ replies' = replies \cup AnswersTo(r, Error(Answers[r.from].answer.error))
    /\ UNCHANGED <<broker, counters, client, faultsLeft>>
    /\ IsHidden({})

BatchIsReplicated == AppendSucceeds /\ IsHidden({})
IntervalEnds      == IntervalPasses /\ IsHidden({})

SessionTimerExpires ==
  \E m \in group.sessionTimers :
    /\ HasExpired(heard[m], Traces[trace].sessionTimeout)
    /\ UpdateGroup(SessionExpired(group, m, existing), {})
    /\ UNCHANGED <<counters, client, requests, faultsLeft>>
    /\ IsHidden({})

RebalanceTimerExpires ==
  \E m \in DOMAIN group.rebalanceTimers :
    /\ HasExpired(armed[m], Traces[trace].rebalanceTimeout)
    /\ UpdateGroup(RebalanceExpired(group, m, existing), {})
    /\ UNCHANGED <<counters, client, requests, faultsLeft>>
    /\ IsHidden({})

\* Another coordinator, or the same one after a restart, loads the group (F-LOAD-01).
CoordinatorIsReplaced ==
  /\ MayFailOver
  /\ \E k \in 0..Len(unreplicated), b \in {FALSE, Interval} :
       LET hard == IF k = 0 THEN log ELSE unreplicated[k].hard
       IN log' = hard /\ group' = Loaded(hard, b)
  /\ group' # group \/ unreplicated # << >>
  /\ unreplicated' = << >>
  /\ replies' = replies \cup {To(y.to, Error("NOT_COORDINATOR")) : y \in WaitingAnswers}
  /\ UNCHANGED <<counters, client, requests, faultsLeft>>
  /\ IsHidden(DOMAIN group'.members)

-----------------------------------------------------------------------------
TraceInit ==
  /\ Init
  /\ ReadingStarts
  /\ heard = << >>
  /\ armed = << >>

HiddenStep ==
  \/ HeartbeatIsHandled
  \/ LeaveIsHandled
  \/ CommitIsHandled
  \/ RequestIsTurnedAway
  \/ BatchIsReplicated
  \/ IntervalEnds
  \/ SessionTimerExpires
  \/ RebalanceTimerExpires
  \/ CoordinatorIsReplaced

TraceNext == ReadsRequest \/ ReadsAnswer \/ (IsAnswer /\ HiddenStep)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

Progress == ShowProgress(replies)
=============================================================================
