----------------------------- MODULE MixedTypes -----------------------------
(***************************************************************************)
(* Constants and value domains of the closed mixed group: clients of both  *)
(* protocols, one group. Definitions for one protocol alone are in         *)
(* ClassicTypes and ConsumerTypes, under Classic! and Consumer!. The prose *)
(* contract is docs/closed-system.md, part three.                          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

(***************************************************************************)
(* The participants.                                                       *)
(***************************************************************************)
CONSTANTS
  Clients,     \* client processes
  MemberIds,   \* sequence: ids in the order in which they are taken, by coordinator or clients
  Partitions,  \* sequence: the partitions of the one topic that all read
  InstanceOf,  \* client -> instance id, "" = dynamic (G-VOC-03)
  StartsAs     \* client -> the protocols that its processes may speak (X-ROLL-02)

(***************************************************************************)
(* How clients and broker are configured.                                  *)
(***************************************************************************)
CONSTANTS
  Cooperative,             \* do classic clients keep partitions over a rebalance? (G-VOC-15)
  MetadataHasGeneration, \* metadata holds the generation: subscription v2 and later (A-EMB-02)
  Assignor,                \* of the consumer group: "range" or "uniform"; classic leaders assign in
                           \* one way
  Interval,                \* is the assignment interval I > 0? (M-TGT-08)
  Policy                   \* "bidirectional", "upgrade", "downgrade" or "disabled" (X-POL)

(***************************************************************************)
(* Constants of the two protocols that are fixed here.                     *)
(***************************************************************************)
MaxSize == Len(MemberIds)        \* never reached (G-CFG-04)
DelayWindows == 0                \* no extended delay (C-JOIN-43)
FirstParts == Len(Partitions)    \* the topic does not grow
NewInstanceOf == [c \in Clients |-> ""]
ReportsPendingPartitions == TRUE           \* clients report what they are about to take (N-HB-05)

Classic  == INSTANCE ClassicCoordinator
Consumer == INSTANCE ConsumerCoordinator
ClassicMember  == INSTANCE ClassicClient
ConsumerMember == INSTANCE ConsumerClient

Ids       == Classic!Ids
Parts     == Classic!Parts
Instances == Classic!Instances
Size      == Len(Partitions)

\* The values that a configuration may assign. TLC does not check the assumptions of
\* modules under INSTANCE, so those about the participants are here again.
ASSUME Clients # {} /\ Clients \cap {"", "no", "nobody"} = {}
ASSUME "" \notin Ids /\ Cardinality(Ids) = Len(MemberIds)
ASSUME Parts # {} /\ Cardinality(Parts) = Len(Partitions)
ASSUME DOMAIN InstanceOf = Clients /\ Instances \subseteq {"i1", "i2"}
ASSUME StartsAs \in [Clients -> SUBSET {"classic", "consumer"}]
ASSUME {Cooperative, MetadataHasGeneration, Interval} \subseteq BOOLEAN
ASSUME Assignor \in {"range", "uniform"}
ASSUME Policy \in {"bidirectional", "upgrade", "downgrade", "disabled"}

Without(f, S) == Classic!Without(f, S)
Put(f, x, v)  == Classic!Put(f, x, v)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Values. One of the two groups is in memory; the other has its resting   *)
(* value.                                                                  *)
(***************************************************************************)
Protocol == {"classic", "consumer"}

NoClassicGroup  == Classic!EmptyGroup
NoConsumerGroup == Consumer!Loaded(Consumer!NewGroup, FALSE)

IsGroup(g) ==
  /\ g.protocol \in Protocol
  /\ Classic!IsGroup(g.classic)
  /\ Consumer!IsGroup(g.consumer)
  /\ DOMAIN g.subscriptions \subseteq Ids  \* metadata of the classic members of a consumer group (X-UP-05)
  /\ \A m \in DOMAIN g.subscriptions : g.subscriptions[m] \in Classic!Metadata
  /\ g.joinTimers \subseteq Ids            \* members whose join timer runs (X-TMR-02)
  /\ g.syncTimers \subseteq Ids            \* members whose sync timer runs (X-TMR-03)
  /\ g.protocol = "classic" => g.consumer = NoConsumerGroup /\ g.subscriptions = << >>
  /\ g.protocol = "consumer" => g.classic = NoClassicGroup
                                /\ DOMAIN g.subscriptions \subseteq DOMAIN g.consumer.members

ClassicGroup(g) ==
  [protocol |-> "classic", classic |-> g, consumer |-> NoConsumerGroup,
   subscriptions |-> << >>, joinTimers |-> {}, syncTimers |-> {}]

ConsumerGroup(g, subscriptions) ==
  [protocol |-> "consumer", classic |-> NoClassicGroup, consumer |-> g,
   subscriptions |-> subscriptions, joinTimers |-> {}, syncTimers |-> {}]

\* The replicated state, for the group that exists. A conversion replaces the
\* other group with tombstones.
IsLog(l) ==
  /\ l.protocol \in Protocol
  /\ Classic!IsRecord(l.classic)
  /\ Consumer!IsHard(l.consumer)
  /\ DOMAIN l.subscriptions \subseteq Ids
  /\ l.protocol = "classic" => l.consumer = Consumer!NewGroup /\ l.subscriptions = << >>
  /\ l.protocol = "consumer" => l.classic = Classic!FirstRecord

ClassicLog(record) ==
  [protocol |-> "classic", classic |-> record, consumer |-> Consumer!NewGroup,
   subscriptions |-> << >>]

ConsumerLog(g) ==
  [protocol |-> "consumer", classic |-> Classic!FirstRecord,
   consumer |-> Consumer!Hard(g.consumer), subscriptions |-> g.subscriptions]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Messages are those of the two protocols. Each names its api.            *)
(***************************************************************************)
IsClassic(message) == message.api # "ConsumerGroupHeartbeat"

IsRequest(r) == IF IsClassic(r) THEN Classic!IsRequest(r) ELSE Consumer!IsRequest(r)
IsReply(y) ==
  \/ IsClassic(y) /\ Classic!IsReply(y)
  \/ ~IsClassic(y) /\ Consumer!IsReply(y)
  \/ ~IsClassic(y) /\ y.error \in {"COORDINATOR_LOAD_IN_PROGRESS", "GROUP_ID_NOT_FOUND",
                                   "UNKNOWN_SERVER_ERROR"}
=============================================================================
