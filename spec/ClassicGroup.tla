---------------------------- MODULE ClassicGroup ----------------------------
(***************************************************************************)
(* How a classic consumer group shares partitions: coordinator, clients,   *)
(* network and log as one closed system. docs/closed-system.md is its      *)
(* contract; Fencepost's model builds the same graph from that page.       *)
(*                                                                         *)
(* System (ClassicSystem) is what the protocol does, Environment what      *)
(* happens to it. Fairness is on System alone.                             *)
(***************************************************************************)
EXTENDS ClassicSystem

(***************************************************************************)
(* Environment: clients come and go.                                       *)
(***************************************************************************)

\* WHO an operator. WHEN the client is down. DOES start it.
ClientStarts(c) ==
  /\ "ClientStarts" \in Allowed
  /\ Settled
  /\ client[c].state = "down"
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ UNCHANGED <<broker, log, net, faultsLeft>>

\* WHO a client. WHEN it runs. DOES die without a word.
ClientCrashes(c) ==
  /\ Fault("ClientCrashes")
  /\ client[c].state \notin {"down", "stopped"}
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ StopsWaiting(c, {})

\* WHO a dynamic client with a member id. DOES leave and end (K-LEAVE-01).
ClientLeaves(c) ==
  /\ Fault("ClientLeaves")
  /\ client[c].state \notin {"down", "stopped"}
  /\ client[c].memberId # ""
  /\ InstanceOf[c] = ""
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ StopsWaiting(c, {LeaveRequest(c, client[c].memberId)})

\* WHO a client. WHEN it waits. DOES lose patience, or its connection (K-ERR-13).
ClientGivesUp(c) ==
  /\ Fault("ClientGivesUp")
  /\ Waiting(c)
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ StopsWaiting(c, {})

\* WHO the application, or the leader's metadata watch. WHEN stable.
\* DOES ask for a rebalance (C-REJ-04, 05, 07).
ClientAsksToRejoin(c) ==
  /\ Fault("ClientAsksToRejoin")
  /\ client[c].state = "stable"
  /\ client' = [client EXCEPT ![c].state = "unjoined"]
  /\ UNCHANGED <<broker, log, net>>

\* K-OFF-02: a commit goes out with the generation of the assignment, or not at all.
KnowsItsGeneration(c) ==
  /\ client[c].state \in {"stable", "unjoined"}
  /\ client[c].generation = client[c].ownedGeneration

\* A commit sent now would be accepted: O-COMMIT-25..28 judge it.
CanCommit(c) ==
  /\ KnowsItsGeneration(c)
  /\ CommitError(group, client[c].memberId, InstanceOf[c],
                 client[c].generation) = "NONE"

\* WHO the application. WHEN its client owns something and would be heard. DOES
\* commit. What becomes of the offset is told by Offsets; nothing changes here.
ClientCommits(c) ==
  /\ "ClientCommits" \in Allowed
  /\ client[c].owned # {}
  /\ CanCommit(c)
  /\ UNCHANGED vars

\* WHO the application. WHEN its client owns what it has lost meanwhile, or is in
\* a rebalance. DOES commit, and is refused.
ClientCommitsInVain(c) ==
  /\ "ClientCommits" \in Allowed
  /\ client[c].owned # {}
  /\ KnowsItsGeneration(c)
  /\ ~CanCommit(c)
  /\ UNCHANGED vars

\* WHO an operator, or any process that knows the id (C-LEAVE-10, 25). WHEN m is
\* a member. DOES remove it by a LeaveGroup of its own.
OperatorRemovesMember(m) ==
  /\ Fault("OperatorRemovesMember")
  /\ m \in DOMAIN group.members
  /\ Acted(GetLeave(group, m))

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: network, clocks, log.                                      *)
(***************************************************************************)

\* WHO the network. WHEN somebody waits for the answer. DOES lose the request.
RequestLost ==
  /\ Fault("RequestLost")
  /\ \E r \in {q \in requests : q.heard} : requests' = requests \ {r}
  /\ UNCHANGED <<broker, log, client, replies>>

\* WHO the network. DOES deliver a request once more, some time.
RequestDuplicated ==
  /\ Fault("RequestDuplicated")
  /\ \E r \in {q \in requests : q.heard} :
       requests' = requests \cup {Duplicate(r)}
  /\ UNCHANGED <<broker, log, client, replies>>

\* WHO the network. DOES lose a reply.
ReplyLost ==
  /\ Fault("ReplyLost")
  /\ \E y \in replies : replies' = replies \ {y}
  /\ UNCHANGED <<broker, log, client, requests>>

\* WHO the join timer. WHEN a live client is still missing. DOES not wait for it.
JoinTimerFiresEarly ==
  /\ Fault("JoinTimerFiresEarly")
  /\ group.joinTimer
  /\ ~JoinTimerIsDue
  /\ Acted(JoinExpired(group))

\* WHO the sync timer. WHEN a live client has not synced. DOES not wait for it.
SyncTimerFiresEarly ==
  /\ Fault("SyncTimerFiresEarly")
  /\ group.syncTimer
  /\ ~SyncTimerIsDue
  /\ Acted(SyncExpired(group))

\* WHO the session timer of m. WHEN its client lives, but stalls. DOES C-TMR-06..09.
SessionTimerFiresEarly(m) ==
  /\ Fault("SessionTimerFiresEarly")
  /\ m \in group.sessionTimers
  /\ ~Abandoned(m)
  /\ Acted(SessionExpired(group, m))

\* WHO the log. WHEN the leader's SyncGroup arrives. DOES refuse the record (C-SYNC-22).
AppendFails ==
  /\ Fault("AppendFails")
  /\ \E r \in {q \in requests : q.api = "SyncGroup"} :
       LET inst == InstanceOf[r.from]
       IN /\ Deliverable(requests, r)
          /\ SyncAppends(group, r, inst, unreplicated)
          /\ Handled(SyncAppendFailed(GetSync(group, r, inst, unreplicated)), r)
  /\ UNCHANGED <<log, idsUsed, client>>

\* What the log holds where the first k open records survive.
Surviving(k) == IF k = 0 THEN log ELSE unreplicated[k].record

\* WHO the cluster. DOES make another broker the coordinator: the first k open
\* records survive (F-LOAD-01), the rest and all soft state is lost (F-SURV-02, 03).
CoordinatorFailsOver ==
  /\ "CoordinatorFailsOver" \in Allowed
  /\ faultsLeft > 0
  /\ faultsLeft' = faultsLeft - 1
  /\ \E k \in 0..Len(unreplicated) :
       /\ log' = Surviving(k)
       /\ group' = Loaded(Surviving(k))
  /\ unreplicated' = << >>
  /\ replies' = replies \cup Unloaded(group).out
  /\ UNCHANGED <<idsUsed, client, requests>>

-----------------------------------------------------------------------------
System ==
  \/ AppendSucceeds
  \/ CoordinatorGetsJoin
  \/ CoordinatorGetsSync
  \/ CoordinatorGetsLeave
  \/ ClientGetsJoinReply
  \/ ClientGetsSyncReply
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
  \/ \E c \in Clients : ClientAsksToRejoin(c)
  \/ \E c \in Clients : ClientCommits(c)
  \/ \E c \in Clients : ClientCommitsInVain(c)
  \/ \E m \in Ids : SessionTimerFiresEarly(m)
  \/ \E m \in Ids : OperatorRemovesMember(m)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* As long as the system can do something, it does something: messages     *)
(* arrive, timers of the gone run out, clients go on. Nothing is fair      *)
(* about the environment, and nothing chooses between steps of the system. *)
(* A heartbeat that changes nothing is no step, so clients that are        *)
(* content do not keep the others waiting.                                 *)
(***************************************************************************)
FairSpec == Spec /\ WF_vars(System)
=============================================================================
