"""The session that is being recorded. (First slice: the replay state is in `engine.replaying`.)"""

from playhead.engine.replaying import Ended, ModelAnswers, ModelDecision, ModelView, RecordingEnded, ReplayState

__all__ = ["Ended", "ModelAnswers", "ModelDecision", "ModelView", "RecordingEnded", "ReplayState"]
