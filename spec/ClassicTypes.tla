---------------------------- MODULE ClassicTypes ----------------------------
(***************************************************************************)
(* Constants, value domains and message constructors of the closed classic *)
(* group. The prose contract is docs/closed-system.md; rule ids are those  *)
(* of docs/rules/.                                                         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

(***************************************************************************)
(* The participants.                                                       *)
(***************************************************************************)
CONSTANTS
  Clients,      \* client processes
  MemberIds,    \* sequence: ids in the order in which they are handed out
  Partitions,   \* sequence: the partitions of the one topic that all clients read
  InstanceOf    \* client -> instance id, "" = dynamic (G-VOC-03)

(***************************************************************************)
(* How clients and broker are configured.                                  *)
(***************************************************************************)
CONSTANTS
  Cooperative,             \* clients keep partitions over a rebalance (G-VOC-15)
  MetadataHasGeneration, \* metadata holds the generation: subscription v2 and later (A-EMB-02)
  Assignor,                \* "range" or "any": how a leader assigns (NOT-03)
  MaxSize,                 \* group.max.size (G-CFG-04)
  DelayWindows             \* how often newcomers may extend the initial delay: (R - D) / D (C-JOIN-43)

Range(s)  == {s[i] : i \in 1..Len(s)}
Ids       == Range(MemberIds)
Parts     == Range(Partitions)
Instances == {InstanceOf[c] : c \in Clients} \ {""}

\* The values that a configuration may assign. Ids and clients have names that no field
\* uses for "none".
ASSUME Clients # {} /\ Clients \cap {"", "no", "nobody"} = {}
ASSUME "" \notin Ids /\ Cardinality(Ids) = Len(MemberIds)
ASSUME Parts # {} /\ Cardinality(Parts) = Len(Partitions)
ASSUME DOMAIN InstanceOf = Clients
ASSUME {Cooperative, MetadataHasGeneration} \subseteq BOOLEAN
ASSUME Assignor \in {"range", "any"}
ASSUME MaxSize \in Nat \ {0} /\ DelayWindows \in Nat

(***************************************************************************)
(* "First" is the order of MemberIds. The protocol leaves this choice open *)
(* (NOT-10); docs/closed-system.md fixes it.                               *)
(***************************************************************************)
Position(m) == CHOOSE i \in 1..Len(MemberIds) : MemberIds[i] = m
First(S)    == CHOOSE m \in S : \A n \in S : Position(m) <= Position(n)

Without(f, S) == [x \in DOMAIN f \ S |-> f[x]]
Put(f, x, v)  == [y \in DOMAIN f \cup {x} |-> IF y = x THEN v ELSE f[y]]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Values of the coordinator.                                              *)
(***************************************************************************)
GroupState == {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}

Metadata == [owned : SUBSET Parts, generation : Int]

\* A stored future: none, that of a client, or that of a client that gave up on
\* it.
Future == {"no", "nobody"} \cup Clients

Member == [instanceId : Instances \cup {""}, metadata : Metadata,
           assignment : SUBSET Parts, isNew : BOOLEAN,
           awaitingJoin : Future, awaitingSync : Future]

IsGroup(g) ==
  /\ g.state \in GroupState
  /\ g.initial \in BOOLEAN        \* Preparing, entered from Empty (C-ST-20)
  /\ g.generationId \in Nat       \* the current generation (G-DATA-02)
  /\ g.leader \in Ids \cup {""}   \* "" = no leader (G-DATA-03)
  /\ DOMAIN g.members \subseteq Ids                            \* ids of the members (G-DATA-04)
  /\ \A m \in DOMAIN g.members : g.members[m] \in Member      \* what is kept of each member (G-DATA-11)
  /\ g.pendingJoin \subseteq Ids  \* ids handed out, not yet joined (G-DATA-06)
  /\ g.pendingSync \subseteq Ids  \* members that have not synced (G-DATA-07)
  /\ g.newMemberAdded \in BOOLEAN \* a newcomer in the initial delay (G-DATA-09)
  /\ g.joinTimer \in BOOLEAN      \* the join timer is set (C-TMR-01)
  /\ g.delaysLeft \in 0..DelayWindows \* extensions left to the initial delay (C-JOIN-43)
  /\ g.syncTimer \in BOOLEAN      \* the sync timer is set (C-TMR-02)
  /\ g.sessionTimers \subseteq Ids \* ids whose session timer is set (C-TMR-03..05)

EmptyGroup ==
  [state |-> "Empty", initial |-> FALSE, generationId |-> 0, leader |-> "",
   members |-> << >>, pendingJoin |-> {}, pendingSync |-> {},
   newMemberAdded |-> FALSE, joinTimer |-> FALSE, delaysLeft |-> 0,
   syncTimer |-> FALSE, sessionTimers |-> {}]

\* A GroupMetadata record (F-REC-12).
LoggedMember == [memberId : Ids, instanceId : Instances \cup {""},
                 metadata : Metadata, assignment : SUBSET Parts]
IsRecord(r) == /\ r.generationId \in Nat
               /\ r.leader \in Ids \cup {""}
               /\ r.members \subseteq LoggedMember

FirstRecord == [generationId |-> 0, leader |-> "", members |-> {}]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Values of the client.                                                   *)
(***************************************************************************)
Client == [state : {"down", "unjoined", "joining", "syncing", "stable",
                    "stopped"},
           memberId : Ids \cup {""}, generation : Int,
           owned : SUBSET Parts, ownedGeneration : Int]

\* A client that is not running: "down" may start again, "stopped" may not.
Ended(state) == [state |-> state, memberId |-> "", generation |-> -1,
                 owned |-> {}, ownedGeneration |-> -1]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Messages, one constructor each. awaited says that the sender still      *)
(* waits for the answer.                                                   *)
(***************************************************************************)
JoinRequest(c, id, metadata) ==
  [api |-> "JoinGroup", from |-> c, awaited |-> TRUE, memberId |-> id,
   metadata |-> metadata]

SyncRequest(c, id, generation, assignment) ==
  [api |-> "SyncGroup", from |-> c, awaited |-> TRUE, memberId |-> id,
   generation |-> generation, assignment |-> assignment]

LeaveRequest(c, id) ==
  [api |-> "LeaveGroup", from |-> c, awaited |-> FALSE, memberId |-> id]

JoinError(c, error, id) ==
  [api |-> "JoinGroup", to |-> c, error |-> error, memberId |-> id,
   generation |-> -1, leader |-> "", skipAssignment |-> FALSE,
   members |-> {}]

SyncReply(c, error, assignment) ==
  [api |-> "SyncGroup", to |-> c, error |-> error, assignment |-> assignment]

IsRequest(r) == /\ r.api \in {"JoinGroup", "SyncGroup", "LeaveGroup"}
                /\ r.from \in Clients /\ r.awaited \in BOOLEAN
                /\ r.memberId \in Ids \cup {""}
IsReply(y) == y.api \in {"JoinGroup", "SyncGroup"} /\ y.to \in Clients

\* Where the answer to a request goes; also what is stored while the request is
\* parked.
Caller(r) == IF r.awaited THEN r.from ELSE "nobody"
=============================================================================
