---------------------------- MODULE TraceClassic ----------------------------
(***************************************************************************)
(* Validates a recorded trace of a classic group: is there a behaviour of  *)
(* the coordinator of ClassicSystem that gives exactly these answers, in   *)
(* this order?                                                             *)
(*                                                                         *)
(* Each step either reads the next line of the trace, or is an action of   *)
(* the coordinator, its timers or its log, which no line shows. The trace  *)
(* is accepted if some behaviour reads the last line.                      *)
(*                                                                         *)
(* Clients are not those of ClassicClient: each request of the trace has a *)
(* separate client, which sends what the line says.                        *)
(***************************************************************************)
EXTENDS ClassicSystem, KafkaClassic, TraceReading

VARIABLE heard  \* id -> a time at or before which its session timer was last set
VARIABLE began  \* timer -> a time at or before which the join or sync timer was set

traceVars == <<trace, at, heard, began>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Choices that the protocol leaves open, as the trace shows them.         *)
(***************************************************************************)
\* A choice that the protocol leaves open (NOT-10): the trace shows the leader of the next
\* generation in an answer, or in the SyncGroup that assigns.
NextLeaders ==
  {Answers[q].answer.leader : q \in {p \in DOMAIN Answers :
     /\ Answers[p].number >= at
     /\ Answers[p].answer.api = "JoinGroup"
     /\ Answers[p].answer.generation = group.generationId + 1}}
  \cup {Requests[q].memberId : q \in {p \in DOMAIN Requests :
     /\ Requests[p].api = "SyncGroup"
     /\ Requests[p].generation = group.generationId + 1
     /\ Requests[p].assignment # {}}}
TraceFirst(S) == LET shown == NextLeaders \cap S
                 IN CHOOSE m \in (IF shown = {} THEN S ELSE shown) : TRUE

\* The id that the coordinator gives to the sender of q (NOT-10). If the trace does not have the
\* answer, it is one that no answer gives, or one that is never seen.
FreshIds(q) ==
  IF HasAnswer(q) /\ Answers[q].answer.memberId # "" THEN {Answers[q].answer.memberId}
  ELSE (Traces[trace].ids \ Traces[trace].given) \cup {q}


-----------------------------------------------------------------------------
(***************************************************************************)
(* Requests and answers that ClassicSystem does not have as messages.      *)
(***************************************************************************)
Heartbeat(q, id, generation) ==
  [api |-> "Heartbeat", from |-> q, awaited |-> HasAnswer(q), memberId |-> id,
   generation |-> generation]
Commit(q, id, generation) ==
  [api |-> "OffsetCommit", from |-> q, awaited |-> HasAnswer(q), memberId |-> id,
   generation |-> generation]
Leave(q, rows) ==
  [api |-> "LeaveGroup", from |-> q, awaited |-> HasAnswer(q), rows |-> rows]

\* No client waits for an answer that the trace does not have.
Message(q) ==
  LET r == Requests[q]
      joins == JoinRequest(q, r.memberId, r.metadata)
      syncs == SyncRequest(q, r.memberId, r.generation, r.assignment)
  IN CASE r.api = "JoinGroup"    -> [joins EXCEPT !.awaited = HasAnswer(q)]
       [] r.api = "SyncGroup"    -> [syncs EXCEPT !.awaited = HasAnswer(q)]
       [] r.api = "Heartbeat"    -> Heartbeat(q, r.memberId, r.generation)
       [] r.api = "OffsetCommit" -> Commit(q, r.memberId, r.generation)
       [] r.api = "LeaveGroup"   -> Leave(q, r.rows)

ErrorReply(api, q, error) == [api |-> api, to |-> q, error |-> error]
LeaveReply(q, errors) == [api |-> "LeaveGroup", to |-> q, error |-> "NONE", errors |-> errors]

\* The metadata that a member offers for a protocol; << >> if it does not support it.
Offered(metadata, protocol) ==
  LET rows == {i \in 1..Len(metadata) : metadata[i].name = protocol}
  IN IF rows = {} THEN << >> ELSE metadata[CHOOSE i \in rows : TRUE].metadata

\* Before version 9, the answer to a static leader that returns names another leader, so that it
\* does not assign (C-STATIC-05).
JoinMatches(y, a) ==
  CASE a.error = "NONE" ->
         /\ y.memberId = a.memberId
         /\ y.generation = a.generation
         /\ IF y.skipAssignment /\ Requests[y.to].version < 9
            THEN a.leader # y.memberId /\ a.members = {}
            ELSE /\ y.leader = a.leader
                 /\ y.skipAssignment = a.skipAssignment
                 /\ {[memberId |-> l.memberId, metadata |-> Offered(l.metadata, a.protocol)]
                     : l \in y.members} = a.members
    [] a.error = "MEMBER_ID_REQUIRED" -> y.memberId = a.memberId
    [] OTHER -> TRUE

\* The answer y is the one in the trace.
Matches(y, a) ==
  /\ y.api = a.api
  /\ y.error = a.error
  /\ CASE y.api = "JoinGroup"  -> JoinMatches(y, a)
       [] y.api = "SyncGroup"  -> y.assignment = a.assignment
       [] y.api = "LeaveGroup" -> y.error = "NONE" => y.errors = a.errors
       [] OTHER                -> TRUE

FitsTheTrace == \A y \in replies' \ replies : Matches(y, Answers[y.to].answer)

\* The request may be handled now. In a quick search, requests that get their answer at once and change
\* little are handled just before it, and the others in the order in which they were sent.
AnsweredAtOnce(q) == \/ Requests[q].api \in {"Heartbeat", "OffsetCommit"}
                     \/ Requests[q].api = "JoinGroup" /\ Answers[q].answer.error # "NONE"
IsInTurn(r) ==
  CASE Search # "quick" \/ ~HasAnswer(r.from) -> TRUE
    [] AnsweredAtOnce(r.from) -> Answers[r.from].number = at
    [] OTHER -> \A q \in {p \in requests : p.api = r.api /\ HasAnswer(p.from)} :
                  ~AnsweredAtOnce(q.from) => Requests[q.from].number >= Requests[r.from].number

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
  /\ UNCHANGED <<broker, log, replies, client, faultsLeft, trace, heard, began>>

ReadsAnswer ==
  /\ HasMoreLines
  /\ Line.type = "received"
  /\ MissingBefore(Line.request) = {}
  /\ \E y \in replies :
       /\ y.to = Line.request
       /\ Matches(y, Answers[y.to].answer)
       /\ replies' = replies \ {y}
  /\ at' = at + 1
  /\ UNCHANGED <<broker, log, requests, client, faultsLeft, trace, heard, began>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Hidden steps.                                                           *)
(***************************************************************************)
\* The session timers that this step certainly sets again: those of the sender, of all members at the
\* end of a join phase, and of members whose SyncGroup is answered (C-JOIN-48, C-SYNC-21, C-JOIN-42).
Renewed(senders) ==
  senders
  \cup (IF group'.generationId # group.generationId THEN DOMAIN group'.members ELSE {})
  \cup {m \in Synced(group) : m \notin Synced(group')}

TimersFollow(senders) ==
  /\ heard' = [m \in group'.sessionTimers |->
                 IF m \in DOMAIN heard /\ m \notin Renewed(senders) THEN heard[m] ELSE EarliestTime]
  /\ began' =
       [join |-> IF group'.joinTimer /\ group.joinTimer
                    /\ group'.generationId = group.generationId
                    /\ group'.delaysLeft = group.delaysLeft
                 THEN began.join ELSE EarliestTime,
        sync |-> IF group'.syncTimer /\ group.syncTimer
                    /\ group'.generationId = group.generationId
                 THEN began.sync ELSE EarliestTime]

\* Every hidden step: nothing is read, and no answer is given that the trace does not have.
IsHidden(senders) ==
  /\ TimersFollow(senders)
  /\ Search # "report" => FitsTheTrace
  /\ UNCHANGED <<trace, at>>

\* Before version 4, a new member gets its id with the answer of its first JoinGroup (C-JOIN-33).
JoinsAtOnce(r, inst) ==
  /\ Requests[r.from].version < 4
  /\ r.memberId = "" /\ inst = ""
  /\ ~IsOverCapacity(group, "", inst)

JoinIsHandled ==
  \E r \in {q \in requests : q.api = "JoinGroup"} :
    LET inst == InstanceOf[r.from]
    IN /\ TraceDeliverable(requests, r)
       /\ \E fresh \in (IF NeedsId(group, r, inst) THEN FreshIds(r.from) ELSE {""}) :
            RequestHandled(IF JoinsAtOnce(r, inst)
                           THEN AddMember(Outcome(group), fresh, inst, r.metadata, Caller(r))
                           ELSE HandleJoin(group, r, inst, fresh), r)
       /\ UNCHANGED <<log, idsUsed, client, faultsLeft>>
       /\ IsHidden({})

SyncIsHandled ==
  /\ CoordinatorHandlesSync
  /\ IsHidden({})

\* A heartbeat of a member of the current generation sets its session timer again (C-HB-05..12).
HeartbeatIsHandled ==
  \E r \in {q \in requests : q.api = "Heartbeat"} :
    LET error == HeartbeatError(group, r.memberId, InstanceOf[r.from], r.generation)
        known == error \in {"NONE", "REBALANCE_IN_PROGRESS"}
        g == IF known THEN [group EXCEPT !.sessionTimers = @ \cup {r.memberId}] ELSE group
    IN /\ TraceDeliverable(requests, r)
       /\ RequestHandled(ReplyTo(Outcome(g), Caller(r), ErrorReply("Heartbeat", r.from, error)), r)
       /\ UNCHANGED <<log, idsUsed, client, faultsLeft>>
       /\ IsHidden(IF known THEN {r.memberId} ELSE {})

\* A commit is accepted or refused. If it is accepted, it sets the session timer of its member again.
CommitIsHandled ==
  \E r \in {q \in requests : q.api = "OffsetCommit"} :
    LET error == CommitError(group, r.memberId, InstanceOf[r.from], r.generation)
        g == IF error = "NONE" THEN [group EXCEPT !.sessionTimers = @ \cup {r.memberId}] ELSE group
    IN /\ TraceDeliverable(requests, r)
       /\ RequestHandled(ReplyTo(Outcome(g), Caller(r), ErrorReply("OffsetCommit", r.from, error)), r)
       /\ UNCHANGED <<log, idsUsed, client, faultsLeft>>
       /\ IsHidden(IF error = "NONE" THEN {r.memberId} ELSE {})

\* The member or pending id that a row of LeaveGroup names, by its id or its instance id, and the
\* error of the row (C-LEAVE-11..14).
LeaveError(g, row) ==
  CASE row.instanceId = "" ->
         IF row.memberId \in DOMAIN g.members \cup g.pendingJoin THEN "NONE" ELSE "UNKNOWN_MEMBER_ID"
    [] MappedMembers(g, row.instanceId) = {} -> "UNKNOWN_MEMBER_ID"
    [] row.memberId \notin {""} \cup MappedMembers(g, row.instanceId) -> "FENCED_INSTANCE_ID"
    [] OTHER -> "NONE"
Leaving(g, row) ==
  IF row.instanceId = "" THEN row.memberId ELSE CHOOSE m \in MappedMembers(g, row.instanceId) : TRUE

\* The rows from the i-th on, one after the other; w has the outcome and the errors so far.
RECURSIVE LeaveRows(_, _, _)
LeaveRows(w, rows, errors) ==
  IF rows = << >> THEN [w |-> w, errors |-> errors]
  ELSE LET error == LeaveError(w.g, Head(rows))
           v == HandleLeave(w.g, Leaving(w.g, Head(rows)))
           next == IF error # "NONE" THEN w
                   ELSE [g |-> v.g, out |-> w.out \cup v.out, app |-> w.app \o v.app]
       IN LeaveRows(next, Tail(rows), Append(errors, error))

LeaveIsHandled ==
  \E r \in {q \in requests : q.api = "LeaveGroup"} :
    LET done == LeaveRows(Outcome(group), r.rows, << >>)
    IN /\ TraceDeliverable(requests, r)
       /\ RequestHandled(ReplyTo(done.w, Caller(r), LeaveReply(r.from, done.errors)), r)
       /\ UNCHANGED <<log, idsUsed, client, faultsLeft>>
       /\ IsHidden({})

\* The broker says that it does not lead the partition of the group, or is still loading it. The
\* group does not learn of the request (F-UNLOAD-01).
RequestIsTurnedAway ==
  \E r \in requests :
    LET error == Answers[r.from].answer.error
    IN /\ HasAnswer(r.from)
       /\ error \in NotHere
       /\ TraceDeliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ replies' = replies \cup {
            CASE r.api = "JoinGroup"  -> JoinError(r.from, error, "")
              [] r.api = "SyncGroup"  -> SyncReply(r.from, error, {})
              [] OTHER                -> ErrorReply(r.api, r.from, error)}
       /\ UNCHANGED <<broker, log, client, faultsLeft>>
       /\ IsHidden({})

RecordIsReplicated ==
  /\ AppendSucceeds
  /\ IsHidden({})

\* The initial delay, and the last of its extensions, which may be shorter (C-JOIN-43); then the
\* rebalance timeout (C-JOIN-44).
JoinTimerLength ==
  IF ~group.initial THEN Traces[trace].rebalanceTimeout
  ELSE IF group.delaysLeft = 0 /\ DelayWindows > 0 THEN Traces[trace].lastDelay ELSE Traces[trace].initialDelay

JoinTimerExpires ==
  /\ group.joinTimer
  /\ HasExpired(began.join, JoinTimerLength)
  /\ OutcomeApplied(JoinExpired(group))
  /\ UNCHANGED faultsLeft
  /\ IsHidden({})

SyncTimerExpires ==
  /\ group.syncTimer
  /\ HasExpired(began.sync, Traces[trace].rebalanceTimeout)
  /\ OutcomeApplied(SyncExpired(group))
  /\ UNCHANGED faultsLeft
  /\ IsHidden({})

SessionTimerExpires ==
  \E m \in group.sessionTimers :
    /\ HasExpired(heard[m], Traces[trace].sessionTimeout)
    /\ OutcomeApplied(SessionExpired(group, m))
    /\ UNCHANGED faultsLeft
    /\ IsHidden({})

\* Another coordinator, or the same one after a restart, loads the group (F-LOAD-01).
CoordinatorIsReplaced ==
  /\ MayFailOver
  /\ group # Loaded(log) \/ unreplicated # << >>
  /\ \E k \in 0..Len(unreplicated) :
       LET record == IF k = 0 THEN log ELSE unreplicated[k].record
       IN log' = record /\ group' = Loaded(record)
  /\ unreplicated' = << >>
  /\ replies' = replies \cup Unloaded(group).out
  /\ UNCHANGED <<idsUsed, client, requests, faultsLeft>>
  /\ IsHidden(DOMAIN group'.members)

-----------------------------------------------------------------------------
TraceInit ==
  /\ Init
  /\ ReadingStarts
  /\ heard = << >>
  /\ began = [join |-> 0, sync |-> 0]

HiddenStep ==
  \/ JoinIsHandled
  \/ SyncIsHandled
  \/ HeartbeatIsHandled
  \/ CommitIsHandled
  \/ LeaveIsHandled
  \/ RequestIsTurnedAway
  \/ RecordIsReplicated
  \/ JoinTimerExpires
  \/ SyncTimerExpires
  \/ SessionTimerExpires
  \/ CoordinatorIsReplaced

TraceNext == ReadsRequest \/ ReadsAnswer \/ (IsAnswer /\ HiddenStep)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

Progress == ShowProgress(replies)
=============================================================================
