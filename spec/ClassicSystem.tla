---------------------------- MODULE ClassicSystem ---------------------------
(***************************************************************************)
(* The variables of the closed classic group, and what the protocol does:  *)
(* clients, coordinator and log. ClassicGroup has what happens to them.    *)
(* Each action names its actor, when it is enabled, and its effect.        *)
(***************************************************************************)
EXTENDS ClassicCoordinator, ClassicClient, Environment

CONSTANT SlowAppends  \* may other steps come between an append and its replication?

ASSUME SlowAppends \in BOOLEAN
ASSUME Allowed \subseteq
  {"ClientStarts", "ClientCrashes", "ClientLeaves", "ClientGivesUp", "ClientCommits",
   "ClientRequestsRejoin", "OperatorRemovesMember", "RequestLost", "RequestDuplicated",
   "ReplyLost", "JoinTimerFiresEarly", "SyncTimerFiresEarly", "SessionTimerFiresEarly",
   "AppendFails", "CoordinatorFailsOver"}

VARIABLE group        \* the group in the coordinator's memory
TypeGroup == IsGroup(group)

VARIABLE log          \* the last replicated GroupMetadata record
TypeLog == IsRecord(log)

VARIABLE unreplicated \* records appended, not yet replicated, oldest first
TypeUnreplicated ==
  \A i \in 1..Len(unreplicated) :
    /\ unreplicated[i].cause \in {"sync", "empty", "replace"}
    /\ IsRecord(unreplicated[i].record)
    /\ unreplicated[i].memberId \in Ids \cup {""}

VARIABLE idsUsed      \* how many member ids were handed out
TypeIdsUsed == idsUsed \in 0..Len(MemberIds)

VARIABLE client       \* the client processes
TypeClient == client \in [Clients -> Client]

TypeRequests == \A r \in requests : IsRequest(r)

TypeReplies == \A y \in replies : IsReply(y)

broker == <<group, unreplicated, idsUsed>>
vars   == <<group, log, unreplicated, idsUsed, client, requests, replies,
            faultsLeft>>

EveryVariableHasItsType ==
  /\ TypeGroup /\ TypeLog /\ TypeUnreplicated /\ TypeIdsUsed
  /\ TypeClient /\ TypeRequests /\ TypeReplies /\ TypeFaultsLeft

Init ==
  /\ group = EmptyGroup
  /\ log = FirstRecord
  /\ unreplicated = << >>
  /\ idsUsed = 0
  /\ client = [c \in Clients |-> Ended("down")]
  /\ requests = {}
  /\ replies = {}
  /\ faultsLeft = AllFaultsLeft

-----------------------------------------------------------------------------
(***************************************************************************)
(* Parts of actions.                                                       *)
(***************************************************************************)

\* Without SlowAppends nothing happens while a record is being replicated.
LogIsReady == SlowAppends \/ unreplicated = << >>

\* The coordinator has handled request r; w is the result.
RequestHandled(w, r) ==
  /\ group' = w.g
  /\ unreplicated' = unreplicated \o w.app
  /\ requests' = requests \ {r}
  /\ replies' = replies \cup w.out

\* The coordinator has acted without a request; w is the result.
OutcomeApplied(w) ==
  /\ group' = w.g
  /\ unreplicated' = unreplicated \o w.app
  /\ replies' = replies \cup w.out
  /\ UNCHANGED <<log, idsUsed, client, requests>>

\* c stops waiting: the answer to its request, when it comes, does not reach it.
StopWaiting(c, more) ==
  /\ group' = WithoutListener(group, c)
  /\ StopListening(c, more)
  /\ UNCHANGED <<log, unreplicated, idsUsed>>

IsWaiting(c) == client[c].state \in {"joining", "syncing"}

\* An answer to c may still come.
ExpectsAnswer(c) == IsInFlight(c) \/ IsParked(group, c)

(***************************************************************************)
(* No client holds the id or will learn it from an answer, so it will      *)
(* never send anything again. The timer of an abandoned id is sure to      *)
(* fire. That of a live client fires early only by a fault of the          *)
(* environment.                                                            *)
(***************************************************************************)
IsAbandoned(m) ==
  /\ \A c \in Clients : client[c].memberId # m
  /\ \A y \in replies : y.api = "JoinGroup" => y.memberId # m
  /\ m \in DOMAIN group.members =>
       /\ group.members[m].awaitingJoin \notin Clients
       /\ group.members[m].awaitingSync \notin Clients

JoinTimerIsDue ==
  \/ group.initial
  \/ \A m \in (DOMAIN group.members \ Joined(group)) \cup group.pendingJoin :
       IsAbandoned(m)
SyncTimerIsDue == \A m \in group.pendingSync : IsAbandoned(m)

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: clients.                                                        *)
(***************************************************************************)

\* A client that runs and waits for nothing prepares its join (K-CB-02..04) and
\* sends JoinGroup (K-ST-10).
ClientSendsJoin(c) ==
  /\ LogIsReady
  /\ client[c].state = "unjoined"
  /\ LET p == AfterJoinPrepare(client[c])
     IN /\ client' = [client EXCEPT ![c] = [p EXCEPT !.state = "joining"]]
        /\ requests' = requests \cup {JoinRequest(c, p.memberId, JoinMetadata(p))}
  /\ UNCHANGED <<broker, log, replies, faultsLeft>>

\* A client receives the answer to its JoinGroup (K-ERR-01..10). If it is NONE,
\* the client sends SyncGroup, as leader with an assignment.
ClientReceivesJoinReply ==
  /\ LogIsReady
  /\ \E y \in {z \in replies : z.api = "JoinGroup"} :
       LET c == y.to
           p == AfterJoin(client[c], y)
           Sync(a) == requests \cup {SyncRequest(c, p.memberId, p.generation, a)}
       IN /\ replies' = replies \ {y}
          /\ CASE y.error = "NONE" ->
                    /\ client' = [client EXCEPT ![c] = p]
                    /\ IF y.memberId = y.leader /\ ~y.skipAssignment
                       THEN \E a \in Assignments(y.members) : requests' = Sync(a)
                       ELSE requests' = Sync({})
               [] y.error = "MEMBER_ID_REQUIRED" ->
                    /\ client' = [client EXCEPT ![c] = AfterMemberIdRequired(@, y.memberId)]
                    /\ UNCHANGED requests
               [] OTHER ->
                    /\ client' = [client EXCEPT ![c] = AfterError(@, y.error)]
                    /\ UNCHANGED requests
  /\ UNCHANGED <<broker, log, faultsLeft>>

\* A client receives the answer to its SyncGroup and takes its assignment
\* (K-ST-12, K-CB-05, 06), or handles the error (K-ERR-03..08).
ClientReceivesSyncReply ==
  /\ LogIsReady
  /\ \E y \in {z \in replies : z.api = "SyncGroup"} :
       /\ replies' = replies \ {y}
       /\ client' = [client EXCEPT ![y.to] =
                       IF y.error = "NONE" THEN AfterSync(@, y.assignment)
                       ELSE AfterError(@, y.error)]
  /\ UNCHANGED <<broker, log, requests, faultsLeft>>

\* A stable client heartbeats: request, check and answer in one step
\* (C-HB-05..12, K-ERR-01..08). The answer would wait for open appends
\* (F-RT-16), so there must be none.
ClientHeartbeats(c) ==
  /\ unreplicated = << >>
  /\ client[c].state = "stable"
  /\ LET p == client[c]
         error == HeartbeatError(group, p.memberId, InstanceOf[c], p.generation)
         known == error \in {"NONE", "REBALANCE_IN_PROGRESS"}
     IN /\ group' = IF known THEN [group EXCEPT !.sessionTimers = @ \cup {p.memberId}]
                    ELSE group
        /\ client' = IF error = "NONE" THEN client
                     ELSE [client EXCEPT ![c] = AfterError(p, error)]
  /\ UNCHANGED <<log, unreplicated, idsUsed, net, faultsLeft>>

\* A client stops waiting for an answer that cannot come any more, and joins
\* again (K-ERR-13).
ClientTimesOut(c) ==
  /\ LogIsReady
  /\ IsWaiting(c)
  /\ ~ExpectsAnswer(c)
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ StopWaiting(c, {})
  /\ UNCHANGED faultsLeft

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinator.                                                    *)
(***************************************************************************)

\* The coordinator handles a JoinGroup by section 3 of the rules. If that takes
\* a new member id, there must be one left.
CoordinatorHandlesJoin ==
  /\ LogIsReady
  /\ \E r \in {q \in requests : q.api = "JoinGroup"} :
       LET inst == InstanceOf[r.from]
           new  == IF NeedsId(group, r, inst) THEN 1 ELSE 0
       IN /\ Deliverable(requests, r)
          /\ idsUsed + new <= Len(MemberIds)
          /\ idsUsed' = idsUsed + new
          /\ RequestHandled(HandleJoin(group, r, inst,
                                       IF new = 1 THEN MemberIds[idsUsed + 1] ELSE ""), r)
  /\ UNCHANGED <<log, client, faultsLeft>>

\* The coordinator refuses, parks or answers a SyncGroup, or appends its
\* assignment (C-SYNC-05..19).
CoordinatorHandlesSync ==
  /\ LogIsReady
  /\ \E r \in {q \in requests : q.api = "SyncGroup"} :
       /\ Deliverable(requests, r)
       /\ RequestHandled(HandleSync(group, r, InstanceOf[r.from], unreplicated), r)
  /\ UNCHANGED <<log, idsUsed, client, faultsLeft>>

\* The coordinator handles a LeaveGroup: it removes the member or pending id
\* and does not ask who sent it (C-LEAVE-12..22).
CoordinatorHandlesLeave ==
  /\ LogIsReady
  /\ \E r \in {q \in requests : q.api = "LeaveGroup"} :
       RequestHandled(HandleLeave(group, r.memberId), r)
  /\ UNCHANGED <<log, idsUsed, client, faultsLeft>>

\* The log replicates its oldest open record, whose callback releases the
\* answers (F-RT-04).
AppendSucceeds ==
  /\ unreplicated # << >>
  /\ LET e == Head(unreplicated)
         w == Replicated(group, e)
     IN /\ log' = e.record
        /\ group' = w.g
        /\ replies' = replies \cup w.out
        /\ unreplicated' = Tail(unreplicated)
  /\ UNCHANGED <<idsUsed, client, requests, faultsLeft>>

\* The join timer fires, in the initial delay or when all missing members are
\* abandoned. It extends the delay or ends the join phase (C-JOIN-43, 44).
JoinTimerFires ==
  /\ LogIsReady
  /\ group.joinTimer
  /\ JoinTimerIsDue
  /\ OutcomeApplied(JoinExpired(group))
  /\ UNCHANGED faultsLeft

\* The sync timer fires when every pending sync is abandoned. It removes those
\* members and starts a rebalance (C-SYNC-20).
SyncTimerFires ==
  /\ LogIsReady
  /\ group.syncTimer
  /\ SyncTimerIsDue
  /\ OutcomeApplied(SyncExpired(group))
  /\ UNCHANGED faultsLeft

\* The session timer of an abandoned id m fires (C-TMR-06..09).
SessionTimerFires(m) ==
  /\ LogIsReady
  /\ m \in group.sessionTimers
  /\ IsAbandoned(m)
  /\ OutcomeApplied(SessionExpired(group, m))
  /\ UNCHANGED faultsLeft
=============================================================================
