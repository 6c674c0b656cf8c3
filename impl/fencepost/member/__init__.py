"""Group members as step functions, the events that drive them, and the assignors that a leader runs.

``step`` drives a ``Member`` of a classic group, ``consumer_step`` a ``ConsumerMember`` of a consumer group (KIP-848).
"""

from fencepost.protocol.errors import IllegalEvent as IllegalEvent

from . import quirks as quirks
from .assignors.range import RangeAssignor as RangeAssignor
from .assignors.round_robin import RoundRobinAssignor as RoundRobinAssignor
from .assignors.sticky import CooperativeStickyAssignor as CooperativeStickyAssignor
from .assignors.sticky import StickyAssignor as StickyAssignor
from .consumer import ConsumerMember as ConsumerMember
from .consumer import ConsumerState as ConsumerState
from .consumer import consumer_step as consumer_step
from .events import Answered as Answered
from .events import Call as Call
from .events import CancelMemberTimer as CancelMemberTimer
from .events import Close as Close
from .events import CloseOption as CloseOption
from .events import Command as Command
from .events import Commit as Commit
from .events import CommitFinished as CommitFinished
from .events import CommitRefused as CommitRefused
from .events import CommitResult as CommitResult
from .events import CoordinatorFound as CoordinatorFound
from .events import CoordinatorLost as CoordinatorLost
from .events import Disconnect as Disconnect
from .events import EnforceRebalance as EnforceRebalance
from .events import Failure as Failure
from .events import FailureKind as FailureKind
from .events import FindCoordinator as FindCoordinator
from .events import Listener as Listener
from .events import ListenerDone as ListenerDone
from .events import LookupFailed as LookupFailed
from .events import MemberEvent as MemberEvent
from .events import MemberTimer as MemberTimer
from .events import MemberTimerFired as MemberTimerFired
from .events import MetadataChanged as MetadataChanged
from .events import Poll as Poll
from .events import RequestLost as RequestLost
from .events import RequestMetadata as RequestMetadata
from .events import Returned as Returned
from .events import Send as Send
from .events import SetMemberTimer as SetMemberTimer
from .events import Subscribe as Subscribe
from .events import SubscribePattern as SubscribePattern
from .events import SubscribeRegex as SubscribeRegex
from .events import Unsubscribe as Unsubscribe
from .settings import ConsumerSettings as ConsumerSettings
from .settings import MemberSettings as MemberSettings
from .state import ClassicMemberState as ClassicMemberState
from .state import Member as Member
from .step import step as step
