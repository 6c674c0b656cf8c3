---------------------------- MODULE ConsumerTypes ---------------------------
(***************************************************************************)
(* Constants, value domains and messages of the closed consumer group      *)
(* (KIP-848). The prose contract is docs/closed-system.md, part two; rule  *)
(* ids are those of docs/rules/.                                           *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

(***************************************************************************)
(* The participants.                                                       *)
(***************************************************************************)
CONSTANTS
  Clients,       \* client processes
  MemberIds,     \* sequence: the ids that clients make for themselves, in order (N-HB-08)
  Partitions,    \* sequence: the partitions of the one topic that all subscribe to
  InstanceOf,    \* client -> instance id, "" = dynamic (G-VOC-03)
  NewInstanceOf  \* client -> the instance id that it may change to, "" = never

(***************************************************************************)
(* How clients and broker are configured.                                  *)
(***************************************************************************)
CONSTANTS
  Assignor,   \* "range" or "uniform" (M-TGT-02, NOT-10)
  FirstParts, \* how many of the partitions exist at the start
  Interval,   \* is the assignment interval I > 0? (M-TGT-08)
  ReportsPendingPartitions  \* does a client also report what it is about to take? The Java client does not (N-HB-05)

Range(s)  == {s[i] : i \in 1..Len(s)}
Ids       == Range(MemberIds)
Parts     == Range(Partitions)
Instances == ({InstanceOf[c] : c \in Clients}
              \cup {NewInstanceOf[c] : c \in Clients}) \ {""}

\* The values that a configuration may assign.
ASSUME Clients # {} /\ "" \notin Clients
ASSUME "" \notin Ids /\ Cardinality(Ids) = Len(MemberIds)
ASSUME Cardinality(Parts) = Len(Partitions) /\ FirstParts \in 1..Len(Partitions)
ASSUME DOMAIN InstanceOf = Clients /\ DOMAIN NewInstanceOf = Clients
ASSUME Instances \subseteq {"i1", "i2"}  \* InstanceOrder has these only
ASSUME Assignor \in {"range", "uniform"}
ASSUME {Interval, ReportsPendingPartitions} \subseteq BOOLEAN

\* Instance ids in the order of their names (A-COM-02).
InstanceOrder == SelectSeq(<<"i1", "i2">>, LAMBDA i : i \in Instances)

Without(f, S) == [x \in DOMAIN f \ S |-> f[x]]
Put(f, x, v)  == [y \in DOMAIN f \cup {x} |-> IF y = x THEN v ELSE f[y]]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Values of the coordinator. The partitions that a member holds are a     *)
(* function from partition to assignment epoch (M-PE-06).                  *)
(***************************************************************************)
\* at its target; has to revoke; waits for others (M-MS-01..03)
MemberState == {"STABLE", "UNREVOKED", "UNRELEASED"}

IsHolding(f) == DOMAIN f \subseteq Parts /\ \A p \in DOMAIN f : f[p] \in Nat

IsMember(m) ==
  /\ m.instanceId \in Instances \cup {""}
  /\ m.epoch \in Int /\ m.epoch >= -2        \* e; -2 = away for a while (M-LEAVE-05)
  /\ m.previousEpoch \in Int /\ m.previousEpoch >= -2   \* before the last reconciliation (M-REC-15)
  /\ m.state \in MemberState
  /\ IsHolding(m.assigned)                   \* A
  /\ IsHolding(m.revoking)                   \* R

\* The logged state of a group (F-REC-04..09).
IsHard(h) ==
  /\ h.groupEpoch \in Nat                    \* ge
  /\ h.assignmentEpoch \in Nat               \* ae
  /\ h.hashed \in 0..Len(Partitions)         \* partitions under the metadata hash (M-META-07)
  /\ DOMAIN h.members \subseteq Ids
  /\ \A m \in DOMAIN h.members : IsMember(h.members[m])
  /\ DOMAIN h.target \subseteq Ids           \* T of each member (M-TGT-04)
  /\ \A m \in DOMAIN h.target : h.target[m] \subseteq Parts
  /\ DOMAIN h.instances \subseteq Instances  \* instance id -> member id (G-DATA-20)
  /\ \A i \in DOMAIN h.instances : h.instances[i] \in Ids

IsGroup(g) ==
  /\ IsHard(g)
  /\ DOMAIN g.rebalanceTimers \subseteq Ids  \* member -> its epoch at arming (M-TMR-02)
  /\ \A m \in DOMAIN g.rebalanceTimers : g.rebalanceTimers[m] \in Int
  /\ g.sessionTimers \subseteq DOMAIN g.members  \* members whose timer is set (M-TMR-01)
  /\ g.blocked \in BOOLEAN                   \* the assignment interval runs (M-TGT-09)

\* A group that has just been created (M-VAL-21).
NewGroup == [groupEpoch |-> 1, assignmentEpoch |-> 1, hashed |-> 0,
             members |-> << >>, target |-> << >>, instances |-> << >>]

Hard(g) == [groupEpoch |-> g.groupEpoch, assignmentEpoch |-> g.assignmentEpoch,
            hashed |-> g.hashed, members |-> g.members, target |-> g.target,
            instances |-> g.instances]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Values of the client.                                                   *)
(***************************************************************************)
Client == [state : {"down", "joining", "member", "stopped"},
           memberId : Ids \cup {""},         \* made by the client (N-HB-08)
           instanceId : Instances \cup {""},
           epoch : Nat,                      \* of the last answer; 0 = not in the group
           owned : SUBSET Parts,             \* what the application believes to own
           assigned : SUBSET Parts,          \* its last received assignment
           reconciling : BOOLEAN,            \* received, callbacks not done (N-ST-03)
           unacknowledged : BOOLEAN,         \* done, not yet reported (N-ST-04)
           unsure : BOOLEAN,                 \* the next heartbeat is full (N-HB-04)
           waiting : BOOLEAN]                \* a heartbeat is out (N-HB-06)

\* A client that is not running: "down" may start again, "stopped" may not.
Ended(state) ==
  [state |-> state, memberId |-> "", instanceId |-> "", epoch |-> 0,
   owned |-> {}, assigned |-> {}, reconciling |-> FALSE,
   unacknowledged |-> FALSE, unsure |-> FALSE, waiting |-> FALSE]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Messages. awaited: the sender still waits for the answer. full: all     *)
(* fields are there, so the answer holds the assignment (M-RSP-01).        *)
(* includesOwned: owned is not null. includesAssignment: the answer holds  *)
(* the assignment.                                                         *)
(***************************************************************************)
Heartbeat(c, p, includesOwned, owned, full) ==
  [api |-> "ConsumerGroupHeartbeat", from |-> c, awaited |-> TRUE,
   memberId |-> p.memberId, instanceId |-> p.instanceId, epoch |-> p.epoch,
   includesOwned |-> includesOwned, owned |-> owned, full |-> full]

\* A leave heartbeat, for whose answer no client waits (N-HB-09).
LeaveRequest(c, p, epoch) ==
  [api |-> "ConsumerGroupHeartbeat", from |-> c, awaited |-> FALSE,
   memberId |-> p.memberId, instanceId |-> p.instanceId, epoch |-> epoch,
   includesOwned |-> FALSE, owned |-> {}, full |-> FALSE]

IsRequest(r) ==
  /\ r.api = "ConsumerGroupHeartbeat"
  /\ r.from \in Clients /\ r.awaited \in BOOLEAN
  /\ r.memberId \in Ids /\ r.instanceId \in Instances \cup {""}
  /\ r.epoch \in Int /\ r.epoch >= -2
  /\ r.includesOwned \in BOOLEAN /\ r.owned \subseteq Parts /\ r.full \in BOOLEAN

Error(error) == [error |-> error, epoch |-> 0, includesAssignment |-> FALSE, assignment |-> {}]

\* An answer on its way to c.
To(c, y) ==
  [api |-> "ConsumerGroupHeartbeat", to |-> c, error |-> y.error, epoch |-> y.epoch,
   includesAssignment |-> y.includesAssignment, assignment |-> y.assignment]

IsReply(y) ==
  /\ y.api = "ConsumerGroupHeartbeat" /\ y.to \in Clients
  /\ y.error \in {"NONE", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH",
                  "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID",
                  "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"}
  /\ y.epoch \in Nat /\ y.includesAssignment \in BOOLEAN /\ y.assignment \subseteq Parts
=============================================================================
