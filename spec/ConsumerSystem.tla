--------------------------- MODULE ConsumerSystem ---------------------------
(***************************************************************************)
(* The variables, and what the protocol does by itself: members,           *)
(* coordinator, timers and log. What happens to them from outside is       *)
(* ConsumerGroup.                                                          *)
(***************************************************************************)
EXTENDS ConsumerCoordinator, ConsumerClient, Network

CONSTANTS
  Faults,       \* how many faults of the environment a run may have
  SlowAppends,  \* may other steps come between an append and its replication?
  Allowed       \* names of the environment actions that may happen

VARIABLE group  \* the coordinator's memory
TypeGroup == IsGroup(group)

VARIABLE log    \* what is replicated: what a new coordinator loads
TypeLog == IsHard(log)

\* Appended and not yet replicated, oldest first: what the log will hold then,
\* and the answers that wait for it (M-HB-11).
VARIABLE unreplicated
TypeUnreplicated ==
  \A i \in 1..Len(unreplicated) :
    /\ IsHard(unreplicated[i].hard)
    /\ \A y \in unreplicated[i].answers : IsReply(y)

VARIABLE existing     \* how many partitions the topic has
TypeExisting == existing \in FirstParts..Len(Partitions)

VARIABLE idsUsed      \* how many member ids clients have made
TypeIdsUsed == idsUsed \in 0..Len(MemberIds)

VARIABLE client       \* the client processes
TypeClient == client \in [Clients -> Client]

VARIABLE requests     \* heartbeats on their way to the coordinator
TypeRequests == \A r \in requests : IsRequest(r)

VARIABLE replies      \* answers on their way to clients
TypeReplies == \A y \in replies : IsReply(y)

VARIABLE faultsLeft   \* faults that may still happen
TypeFaultsLeft == faultsLeft \in 0..Faults

vars == <<group, log, unreplicated, existing, idsUsed, client, requests,
          replies, faultsLeft>>
broker == <<group, log, unreplicated>>
world  == <<existing, idsUsed>>
net    == <<requests, replies>>

EveryVariableHasItsType ==
  /\ TypeGroup /\ TypeLog /\ TypeUnreplicated /\ TypeExisting /\ TypeIdsUsed
  /\ TypeClient /\ TypeRequests /\ TypeReplies /\ TypeFaultsLeft

Init ==
  /\ group = Loaded(NewGroup, FALSE)
  /\ log = NewGroup
  /\ unreplicated = << >>
  /\ existing = FirstParts
  /\ idsUsed = 0
  /\ client = [c \in Clients |-> Ended("down")]
  /\ requests = {}
  /\ replies = {}
  /\ faultsLeft = Faults

-----------------------------------------------------------------------------
(***************************************************************************)
(* Writing and answering. What changes the hard state is appended; answers *)
(* wait for it, and those that append nothing for what is open before      *)
(* them; errors wait for nothing (F-RT-04, F-RT-07, F-RT-16).              *)
(***************************************************************************)
AnswersTo(r, y) == IF r.heard THEN {To(r.from, y)} ELSE {}

Writes(g) == Hard(g) # Hard(group)

Entry(g, answers) == [hard |-> Hard(g), answers |-> answers]

\* Of the answers to what was appended: those that do not wait. None.
AtOnce(answers) == {}

\* The coordinator's memory becomes g; the answers are released in due time.
Becomes(g, answers) ==
  /\ group' = g
  /\ CASE Writes(g) /\ SlowAppends ->
            /\ unreplicated' = Append(unreplicated, Entry(g, answers \ AtOnce(answers)))
            /\ replies' = replies \cup AtOnce(answers)
            /\ UNCHANGED log
       [] Writes(g) ->
            /\ log' = Hard(g)
            /\ replies' = replies \cup answers
            /\ UNCHANGED unreplicated
       [] unreplicated # << >> /\ \A y \in answers : y.error = "NONE" ->
            /\ unreplicated' = [unreplicated EXCEPT ![Len(unreplicated)].answers = @ \cup answers]
            /\ UNCHANGED <<log, replies>>
       [] OTHER ->
            /\ replies' = replies \cup answers
            /\ UNCHANGED <<log, unreplicated>>

\* c stops waiting: nothing that is still to come reaches it.
StopsWaiting(c, more) ==
  /\ unreplicated' = [i \in 1..Len(unreplicated) |->
       [unreplicated[i] EXCEPT !.answers = GiveUpReplies(@, c)]]
  /\ requests' = GiveUpRequests(requests, c) \cup more
  /\ replies' = GiveUpReplies(replies, c)
  /\ UNCHANGED <<group, log>>

Open == UNION {unreplicated[i].answers : i \in 1..Len(unreplicated)}

\* Somebody could still answer c.
Expecting(c) ==
  \/ \E r \in requests : r.from = c /\ r.heard
  \/ \E y \in replies \cup Open : y.to = c

\* Nothing will ever be heard of the member again: its timers are bound to fire.
Abandoned(m) == \A c \in Clients : client[c].memberId # m

Fault(name) ==
  /\ name \in Allowed
  /\ faultsLeft > 0
  /\ faultsLeft' = faultsLeft - 1

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: members.                                                        *)
(***************************************************************************)

\* Whether a heartbeat that tells nothing would change or bring anything now.
\* One that would not is no step: on its way it would be the same as one later.
BringsNews(c) ==
  \E T \in TargetsFor(group, NextHeartbeat(c, client[c]), existing) :
    LET w == Beat(group, NextHeartbeat(c, client[c]), existing, T)
    IN \/ w.y.error # "NONE" \/ w.y.tells \/ w.y.epoch # client[c].epoch
       \/ Writes(w.g)

\* There is something to tell, or to learn.
HasToSend(c) ==
  client[c].state = "member" /\ ~client[c].unsure /\ ~client[c].unacknowledged
    => BringsNews(c)

\* WHO a client. WHEN it waits for no answer, and there is something to tell or
\* to learn. DOES send a heartbeat: to join, in full, with what it owns, or bare.
ClientSendsHeartbeat(c) ==
  LET p == client[c] IN
  /\ p.state \in {"joining", "member"}
  /\ ~p.waiting
  /\ HasToSend(c)
  /\ client' = [client EXCEPT ![c] = AfterSending(p)]
  /\ requests' = requests \cup {NextHeartbeat(c, p)}
  /\ UNCHANGED <<broker, world, replies, faultsLeft>>

\* WHO a client. WHEN its heartbeat is answered. DOES N-TR-02..06, N-ERR-01..04.
ClientGetsReply ==
  /\ \E y \in replies :
       /\ replies' = replies \ {y}
       /\ client' = [client EXCEPT ![y.to] = AfterReply(@, y)]
  /\ UNCHANGED <<broker, world, requests, faultsLeft>>

\* WHO the application. WHEN an assignment is to be worked on. DOES run the
\* callbacks: what goes is given up, what comes is taken (N-REC-06..08).
ClientReconciles(c) ==
  /\ client[c].reconciling
  /\ client' = [client EXCEPT ![c] = AfterCallbacks(@)]
  /\ UNCHANGED <<broker, world, net, faultsLeft>>

\* WHO a client. WHEN it waits for an answer that cannot come any more.
\* DOES give up waiting; its next heartbeat tells everything (N-ERR-06).
ClientTimesOut(c) ==
  /\ client[c].waiting
  /\ ~Expecting(c)
  /\ client' = [client EXCEPT ![c] = AfterSilence(@)]
  /\ StopsWaiting(c, {})
  /\ UNCHANGED <<world, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinator and log.                                            *)
(***************************************************************************)

\* WHO the coordinator. WHEN a heartbeat of a member arrives.
\* DOES sections 7.3 to 7.6 of the rules.
CoordinatorGetsHeartbeat ==
  /\ \E r \in {q \in requests : q.epoch >= 0} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ \E T \in TargetsFor(group, r, existing) :
            LET w == Beat(group, r, existing, T)
            IN Becomes(w.g, AnswersTo(r, w.y))
  /\ UNCHANGED <<world, client, faultsLeft>>

\* WHO the coordinator. WHEN a leave heartbeat arrives. DOES M-LEAVE-01..05.
CoordinatorGetsLeave ==
  /\ \E r \in {q \in requests : q.epoch < 0} :
       /\ requests' = requests \ {r}
       /\ Becomes(Leave(group, r, existing), {})
  /\ UNCHANGED <<world, client, faultsLeft>>

\* WHO the log. WHEN something is open. DOES replicate the oldest batch, which
\* releases the answers that waited for it (F-RT-04).
AppendSucceeds ==
  /\ unreplicated # << >>
  /\ log' = Head(unreplicated).hard
  /\ replies' = replies \cup Head(unreplicated).answers
  /\ unreplicated' = Tail(unreplicated)
  /\ UNCHANGED <<group, world, client, requests, faultsLeft>>

\* WHO the clock. WHEN the assignment interval runs. DOES end it (M-TGT-08).
IntervalPasses ==
  /\ group.blocked
  /\ group' = [group EXCEPT !.blocked = FALSE]
  /\ UNCHANGED <<log, unreplicated, world, client, net, faultsLeft>>

\* WHO the session timer of m. WHEN m is abandoned. DOES fence it (M-TMR-01).
SessionTimerFires(m) ==
  /\ m \in group.sessionTimers
  /\ Abandoned(m)
  /\ Becomes(SessionExpired(group, m, existing), {})
  /\ UNCHANGED <<world, client, requests, faultsLeft>>

\* WHO the rebalance timer of m. WHEN m is abandoned. DOES M-TMR-02.
RebalanceTimerFires(m) ==
  /\ m \in DOMAIN group.rebalanceTimers
  /\ Abandoned(m)
  /\ Becomes(RebalanceExpired(group, m, existing), {})
  /\ UNCHANGED <<world, client, requests, faultsLeft>>
=============================================================================
