"""The events that drive a coordinator, and what a step returns: records, answers, timers, tasks and rebalances.

Besides, the interfaces of what a host passes in: choices, functions and server assignors."""

from .protocol.choices import Choices as Choices
from .protocol.choices import Functions as Functions
from .protocol.events import Appended as Appended
from .protocol.events import AppendFailed as AppendFailed
from .protocol.events import CancelTimer as CancelTimer
from .protocol.events import Event as Event
from .protocol.events import GroupConfig as GroupConfig
from .protocol.events import GroupConfigChanged as GroupConfigChanged
from .protocol.events import Load as Load
from .protocol.events import LoadFailed as LoadFailed
from .protocol.events import LoadStarted as LoadStarted
from .protocol.events import Outcome as Outcome
from .protocol.events import Reply as Reply
from .protocol.events import Request as Request
from .protocol.events import SetTimer as SetTimer
from .protocol.events import TaskDone as TaskDone
from .protocol.events import TaskKey as TaskKey
from .protocol.events import TaskKind as TaskKind
from .protocol.events import TimerCommand as TimerCommand
from .protocol.events import TimerFired as TimerFired
from .protocol.events import TimerKey as TimerKey
from .protocol.events import TimerKind as TimerKind
from .protocol.events import Topic as Topic
from .protocol.events import TopicsChanged as TopicsChanged
from .protocol.events import Unload as Unload
from .protocol.rebalances import GenerationBegan as GenerationBegan
from .protocol.rebalances import GroupType as GroupType
from .protocol.rebalances import MemberIdentity as MemberIdentity
from .protocol.rebalances import RebalanceCause as RebalanceCause
from .protocol.rebalances import RebalanceEnded as RebalanceEnded
from .protocol.rebalances import RebalanceReason as RebalanceReason
from .protocol.rebalances import RebalanceReport as RebalanceReport
from .protocol.rebalances import RebalanceStarted as RebalanceStarted
from .protocol.server_assignor import Assignor as Assignor
from .protocol.server_assignor import AssignorError as AssignorError
from .protocol.server_assignor import GroupSpec as GroupSpec
from .protocol.server_assignor import MemberSpec as MemberSpec
from .protocol.server_assignor import Share as Share
from .protocol.server_assignor import Target as Target
