"""The stream of one session: how nodes become segments and segments become nodes.

A segment is two compressed blobs. ``heads`` is JSON: what listings show of each node, and an index of the body.
``body`` is JSON texts, one behind the other: messages first, then one payload object per node.

A session repeats its history in every model request, so requests hold no messages. Messages are numbered through the
session in the order in which they were first seen, and so are message lists. A list is written as: the list that it
continues (-1: none), how many messages of that one it keeps, then the messages that follow. What the segment holds
itself is written as its place in the segment, what earlier segments hold as ``-2 - number``; so a segment can be
built before its place in the session is known, and it never changes.

Tool schemas and large values are cut out of the body and kept once per store, under the sha256 of their text. An
index says where each was cut, beside the texts and never inside them, so that recorded text cannot pass for a
reference.
"""

from playhead.store.segments.builder import Known, Segment, build, learn
from playhead.store.segments.index import Stored
from playhead.store.segments.merger import merge
from playhead.store.segments.reader import read

__all__ = ["Known", "Segment", "Stored", "build", "learn", "merge", "read"]
