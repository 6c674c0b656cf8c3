---------------------------- MODULE ClassicGroup ----------------------------
(***************************************************************************)
(* How a classic consumer group shares partitions: coordinator, clients,   *)
(* network and log as one closed system. docs/closed-system.md is its      *)
(* contract; Fencepost's model builds the same graph from that page.       *)
(*                                                                         *)
(* System (ClassicSystem) is what the protocol does; Environment is what   *)
(* happens to it. Only System is fair.                                     *)
(***************************************************************************)
EXTENDS ClassicSystem

(***************************************************************************)
(* Environment: clients come and go.                                       *)
(***************************************************************************)

\* An operator starts a client that is down.
ClientStarts(c) ==
  /\ "ClientStarts" \in Allowed
  /\ LogIsReady
  /\ client[c].state = "down"
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ UNCHANGED <<broker, log, net, faultsLeft>>

\* A running client crashes, without a message to anyone.
ClientCrashes(c) ==
  /\ Fault("ClientCrashes")
  /\ LogIsReady
  /\ client[c].state \notin {"down", "stopped"}
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ StopWaiting(c, {})

\* A dynamic client with a member id leaves and ends (K-LEAVE-01).
ClientLeaves(c) ==
  /\ Fault("ClientLeaves")
  /\ LogIsReady
  /\ client[c].state \notin {"down", "stopped"}
  /\ client[c].memberId # ""
  /\ InstanceOf[c] = ""
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ StopWaiting(c, {LeaveRequest(c, client[c].memberId)})

\* A waiting client reaches its request timeout or loses its connection
\* (K-ERR-13).
ClientGivesUp(c) ==
  /\ Fault("ClientGivesUp")
  /\ LogIsReady
  /\ IsWaiting(c)
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ StopWaiting(c, {})

\* The application, or the leader's metadata watch, asks a stable client for a
\* rebalance (C-REJ-04, 05, 07).
ClientRequestsRejoin(c) ==
  /\ Fault("ClientRequestsRejoin")
  /\ LogIsReady
  /\ client[c].state = "stable"
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ UNCHANGED <<broker, log, net>>

\* A commit carries the generation of the assignment, or is not sent (K-OFF-02).
HasItsGeneration(c) ==
  /\ client[c].state \in {"stable", "unjoined"}
  /\ client[c].generation = client[c].ownedGeneration

\* A commit sent now would be accepted by the checks of O-COMMIT-25..28.
CanCommit(c) ==
  /\ HasItsGeneration(c)
  /\ CommitError(group, client[c].memberId, InstanceOf[c],
                 client[c].generation) = "NONE"

\* The applications that commit: that of c, if its client owns something.
Committing(c) == {d \in {c} : client[d].owned # {} /\ HasItsGeneration(d)}

\* The application commits.
ClientCommits(c) == Commits(Committing(c), CanCommit, TRUE) /\ UNCHANGED vars

\* The application commits although its client has lost its partitions or is in
\* a rebalance. The coordinator refuses the commit.
ClientCommitIsRejected(c) == Commits(Committing(c), CanCommit, FALSE) /\ UNCHANGED vars

\* An operator, or any process that knows the id, removes member m by a
\* LeaveGroup (C-LEAVE-10, 25).
OperatorRemovesMember(m) ==
  /\ Fault("OperatorRemovesMember")
  /\ LogIsReady
  /\ m \in DOMAIN group.members
  /\ OutcomeApplied(HandleLeave(group, m))

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: network, clocks, log.                                      *)
(***************************************************************************)

\* The network loses a request whose sender still waits for the answer.
RequestLost ==
  /\ LoseRequest
  /\ LogIsReady
  /\ UNCHANGED <<broker, log, client>>

\* The network will deliver a request a second time.
RequestDuplicated ==
  /\ CopyRequest
  /\ LogIsReady
  /\ UNCHANGED <<broker, log, client>>

\* The network loses a reply.
ReplyLost ==
  /\ LoseReply
  /\ LogIsReady
  /\ UNCHANGED <<broker, log, client>>

\* The join timer fires although a live client is still missing.
JoinTimerFiresEarly ==
  /\ FiresEarly("JoinTimerFiresEarly", group.joinTimer, JoinTimerIsDue)
  /\ LogIsReady
  /\ OutcomeApplied(JoinExpired(group))

\* The sync timer fires although a live client has not synced.
SyncTimerFiresEarly ==
  /\ FiresEarly("SyncTimerFiresEarly", group.syncTimer, SyncTimerIsDue)
  /\ LogIsReady
  /\ OutcomeApplied(SyncExpired(group))

\* The session timer of m fires although its client lives, but stalls
\* (C-TMR-06..09).
SessionTimerFiresEarly(m) ==
  /\ FiresEarly("SessionTimerFiresEarly", m \in group.sessionTimers, IsAbandoned(m))
  /\ LogIsReady
  /\ OutcomeApplied(SessionExpired(group, m))

\* The log refuses the record of the leader's SyncGroup (C-SYNC-22).
AppendFails ==
  /\ Fault("AppendFails")
  /\ LogIsReady
  /\ \E r \in {q \in requests : q.api = "SyncGroup"} :
       LET inst == InstanceOf[r.from]
       IN /\ Deliverable(requests, r)
          /\ SyncAppends(group, r, inst, unreplicated)
          /\ RequestHandled(SyncAppendFailed(HandleSync(group, r, inst, unreplicated)), r)
  /\ UNCHANGED <<log, idsUsed, client>>

\* The record in the log if the first k open records survive.
Surviving(k) == IF k = 0 THEN log ELSE unreplicated[k].record

\* Another broker becomes the coordinator. The first k open records survive
\* (F-LOAD-01); the rest and all soft state is lost (F-SURV-02, 03).
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ \E k \in 0..Len(unreplicated) :
       /\ log' = Surviving(k)
       /\ group' = Loaded(Surviving(k))
  /\ unreplicated' = << >>
  /\ replies' = replies \cup Unloaded(group).out
  /\ UNCHANGED <<idsUsed, client, requests>>

-----------------------------------------------------------------------------
System ==
  \/ AppendSucceeds
  \/ CoordinatorHandlesJoin
  \/ CoordinatorHandlesSync
  \/ CoordinatorHandlesLeave
  \/ ClientReceivesJoinReply
  \/ ClientReceivesSyncReply
  \/ JoinTimerFires
  \/ SyncTimerFires
  \/ \E c \in Clients : ClientSendsJoin(c)
  \/ \E c \in Clients : ClientHeartbeats(c)
  \/ \E c \in Clients : ClientTimesOut(c)
  \/ \E m \in Ids : SessionTimerFires(m)

Environment ==
  \/ RequestLost
  \/ RequestDuplicated
  \/ ReplyLost
  \/ JoinTimerFiresEarly
  \/ SyncTimerFiresEarly
  \/ AppendFails
  \/ CoordinatorFailsOver
  \/ \E c \in Clients : ClientStarts(c)
  \/ \E c \in Clients : ClientCrashes(c)
  \/ \E c \in Clients : ClientLeaves(c)
  \/ \E c \in Clients : ClientGivesUp(c)
  \/ \E c \in Clients : ClientRequestsRejoin(c)
  \/ \E c \in Clients : ClientCommits(c)
  \/ \E c \in Clients : ClientCommitIsRejected(c)
  \/ \E m \in Ids : SessionTimerFiresEarly(m)
  \/ \E m \in Ids : OperatorRemovesMember(m)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

\* The next heartbeat of a stable client brings news, or sets its session timer again.
HeartbeatHasEffect(c) ==
  LET p == client[c]
  IN /\ p.state = "stable"
     /\ \/ HeartbeatError(group, p.memberId, InstanceOf[c], p.generation) # "NONE"
        \/ p.memberId \notin group.sessionTimers

\* A JoinGroup can be handled: if it needs an id, one is left.
HasAnId(r) == ~NeedsId(group, r, InstanceOf[r.from]) \/ idsUsed < Len(MemberIds)

\* ENABLED <<System>>_vars, written out guard by guard. TLC computes ENABLED by
\* trial, which takes a second per state. MCClassicFairness checks that the two are
\* equal. A join timer that is only set again changes nothing (C-JOIN-46).
SystemCanMove ==
  \/ unreplicated # << >>
  \/ \E r \in requests :
       \/ r.api = "LeaveGroup"
       \/ Deliverable(requests, r) /\ (r.api = "JoinGroup" => HasAnId(r))
  \/ replies # {}
  \/ group.joinTimer /\ JoinTimerIsDue /\ JoinExpired(group) # Outcome(group)
  \/ group.syncTimer /\ SyncTimerIsDue
  \/ \E c \in Clients :
       \/ client[c].state = "unjoined"
       \/ HeartbeatHasEffect(c)
       \/ IsWaiting(c) /\ ~ExpectsAnswer(c)
  \/ \E m \in group.sessionTimers : IsAbandoned(m)

(***************************************************************************)
(* As long as the system can do something, it does something: WF(System),  *)
(* with its ENABLED written out. Messages arrive, timers of abandoned ids  *)
(* fire, clients continue. The environment is not fair, and no step of the *)
(* system has priority over another. A heartbeat that changes nothing is   *)
(* not a step, so clients at rest do not keep the others waiting.          *)
(***************************************************************************)
FairSpec == Spec /\ ([]<>~SystemCanMove \/ []<><<System>>_vars)
=============================================================================
