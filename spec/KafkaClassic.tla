---------------------------- MODULE KafkaClassic ----------------------------
(***************************************************************************)
(* Kafka's own faults in classic groups, as of Kafka 4.3. A configuration  *)
(* substitutes an operator for one of the specification. Each comment      *)
(* names the switch of the profiles (profile.py) that does the same in the *)
(* model.                                                                  *)
(***************************************************************************)
EXTENDS ClassicCoordinator

\* For KnownMember, fault_static_return_counts_as_new: a static member that returns
\* needs a new place (C-JOIN-75).
KnownByIdOnly(g, id, inst) == {id} \cap DOMAIN g.members

\* For AfterRefusal, fault_refusal_leaves_join_phase: the last refusal does not end the
\* join phase (C-JOIN-23).
JoinPhaseContinues(w) == w

\* For PendingAfterReplacement, fault_replacement_keeps_pending_sync: a replaced id stays
\* pending (C-STATIC-16).
ReplacedStaysPending(pending, old, fresh) == pending

\* For NoAssignmentIsOpen, fault_every_leader_sync_appends: each SyncGroup of the leader
\* appends a record (C-SYNC-19).
OpenAssignmentsDoNotCount(g, open) == TRUE

\* For AnswerSyncOfLeaver, fault_leave_forgets_parked_sync: a leave does not answer the
\* parked SyncGroup (C-LEAVE-24).
SyncOfLeaverIsForgotten(w, member) == w

\* For NewMemberAddedAfterJoinPhase, fault_new_member_added_survives: the newcomer flag
\* outlives its delay (C-JOIN-71).
NewMemberAddedSurvives(g) == g.newMemberAdded
=============================================================================
