----------------------------- MODULE MixedTypes -----------------------------
(***************************************************************************)
(* Constants and value domains of the closed mixed group: clients of both  *)
(* protocols, one group. What is of one protocol alone is that of          *)
(* ClassicTypes and ConsumerTypes, under Classic! and Consumer!. The prose *)
(* contract is docs/closed-system.md, part three.                          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

(***************************************************************************)
(* Who takes part.                                                         *)
(***************************************************************************)
CONSTANTS
  Clients,     \* client processes
  MemberIds,   \* sequence: the ids, in the order in which they are taken, whoever makes them
  Partitions,  \* sequence: the partitions of the one topic that all read
  InstanceOf,  \* client -> instance id, "" = dynamic (G-VOC-03)
  StartsAs     \* client -> the protocols that its processes may speak (X-ROLL-02)

(***************************************************************************)
(* How clients and broker are set up.                                      *)
(***************************************************************************)
CONSTANTS
  Cooperative,             \* do classic clients keep partitions over a rebalance? (G-VOC-15)
  MetadataTellsGeneration, \* subscription v2 and later (A-EMB-02)
  Assignor,                \* of the consumer group: "range" or "uniform"; classic leaders: one way
  Interval,                \* is the assignment interval I > 0? (M-TGT-08)
  Policy                   \* "bidirectional", "upgrade", "downgrade" or "disabled" (X-POL)

(***************************************************************************)
(* Faults that Kafka 4.3 has; FALSE is the intended protocol. The names    *)
(* are those of settings.py.                                               *)
(***************************************************************************)
CONSTANTS
  fault_upgrade_without_protocol,      \* X-UP-07
  fault_upgrade_answers_before_checks, \* X-UP-03
  fault_upgrade_without_bump,          \* X-UP-15
  fault_classic_members_starve,        \* X-HB-03, X-SYNC-05
  fault_downgrade_owes,                \* X-DOWN-22
  fault_downgrade_loses_bump,          \* X-DOWN-23
  fault_downgrade_leaves_timers,       \* X-DOWN-06, X-DOWN-33
  fault_join_generation_ignored,       \* X-JOIN-06, X-JOIN-10, X-JOIN-12
  fault_downgrade_assigns_target,      \* X-DOWN-04
  fault_upgrade_overlooks_owned,       \* X-UP-05, C-JOIN-42
  fault_empty_group_counts_anew        \* C-JOIN-16, M-VAL-22

(***************************************************************************)
(* What the parts of each protocol need and is settled here.               *)
(***************************************************************************)
MaxSize == Len(MemberIds)        \* G-CFG-04: never reached
DelayWindows == 0                \* C-JOIN-43
FirstParts == Len(Partitions)    \* the topic does not grow
NewInstanceOf == [c \in Clients |-> ""]
TellsWhatComes == TRUE           \* N-HB-05

\* The faults of one protocol alone are shown there.
fault_new_member_added_survives      == FALSE
fault_refusal_leaves_join_phase      == FALSE
fault_static_return_counts_as_new    == FALSE
fault_replacement_keeps_pending_sync == FALSE
fault_leave_forgets_parked_sync      == FALSE
fault_every_leader_sync_appends      == FALSE
fault_static_rejoin_unreleased       == FALSE
fault_relabelled_instance_stays      == FALSE
fault_new_instance_has_no_target     == FALSE
fault_failed_append_loses_timers     == FALSE
fault_rejoin_confirms_revocation     == FALSE
old_known_member_at_zero_fenced      == FALSE
old_revocation_advances_epoch        == FALSE
old_emptied_group_keeps_target_epoch == FALSE

Classic  == INSTANCE ClassicCoordinator
Consumer == INSTANCE ConsumerCoordinator
ClassicMember  == INSTANCE ClassicClient
ConsumerMember == INSTANCE ConsumerClient

Ids       == Classic!Ids
Parts     == Classic!Parts
Instances == Classic!Instances
Size      == Len(Partitions)

Without(f, S) == Classic!Without(f, S)
Put(f, x, v)  == Classic!Put(f, x, v)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Domains. Of the two groups one is in memory; the other has its resting  *)
(* value.                                                                  *)
(***************************************************************************)
Protocol == {"classic", "consumer"}

NoClassicGroup  == Classic!EmptyGroup
NoConsumerGroup == Consumer!Loaded(Consumer!NewGroup, FALSE)

IsGroup(g) ==
  /\ g.protocol \in Protocol
  /\ Classic!IsGroup(g.classic)
  /\ Consumer!IsGroup(g.consumer)
  /\ DOMAIN g.subscriptions \subseteq Ids  \* of the classic members of a consumer group (X-UP-05)
  /\ \A m \in DOMAIN g.subscriptions : g.subscriptions[m] \in Classic!Metadata
  /\ g.joinTimers \subseteq Ids            \* X-TMR-02
  /\ g.syncTimers \subseteq Ids            \* X-TMR-03
  /\ g.protocol = "classic" => g.consumer = NoConsumerGroup /\ g.subscriptions = << >>
  /\ g.protocol = "consumer" => g.classic = NoClassicGroup
                                /\ DOMAIN g.subscriptions \subseteq DOMAIN g.consumer.members

ClassicGroup(g) ==
  [protocol |-> "classic", classic |-> g, consumer |-> NoConsumerGroup,
   subscriptions |-> << >>, joinTimers |-> {}, syncTimers |-> {}]

ConsumerGroup(g, subscriptions) ==
  [protocol |-> "consumer", classic |-> NoClassicGroup, consumer |-> g,
   subscriptions |-> subscriptions, joinTimers |-> {}, syncTimers |-> {}]

\* What is replicated, of the group that there is; a conversion buries the other.
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
(* Messages are those of the two protocols. Those of the classic one name  *)
(* their api; the heartbeats of the other, and their answers, do not.      *)
(***************************************************************************)
IsClassic(message) == "api" \in DOMAIN message
IsApi(message, api) == IsClassic(message) /\ message.api = api

IsRequest(r) == IF IsClassic(r) THEN Classic!IsRequest(r) ELSE Consumer!IsRequest(r)
IsReply(y) ==
  \/ IsClassic(y) /\ Classic!IsReply(y)
  \/ ~IsClassic(y) /\ Consumer!IsReply(y)
  \/ ~IsClassic(y) /\ y.error \in {"COORDINATOR_LOAD_IN_PROGRESS", "GROUP_ID_NOT_FOUND",
                                   "UNKNOWN_SERVER_ERROR"}
=============================================================================
