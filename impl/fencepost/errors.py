"""Every error that the library raises, and Kafka's error codes."""

from .log import BehindLog as BehindLog
from .log import FencedEpoch as FencedEpoch
from .protocol.errors import ErrorCode as ErrorCode
from .protocol.errors import IllegalEvent as IllegalEvent
from .protocol.errors import MisuseError as MisuseError
from .protocol.errors import NoSuchProfile as NoSuchProfile
from .protocol.errors import WrongState as WrongState
from .protocol.errors import WrongType as WrongType
from .protocol.settings import BadSettings as BadSettings
from .store.base import AppendError as AppendError
from .store.base import ClosedStore as ClosedStore
from .store.base import NotInStore as NotInStore
from .store.base import OtherPartitions as OtherPartitions
from .store.base import StoreError as StoreError
