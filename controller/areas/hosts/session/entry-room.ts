import type { Entry } from "../../../../proto/gen/agent/v1/agent.ts";

/** Estimated size of an entry without its contents, roughly its size on the wire. */
const ENTRY_BYTES = 300;
const RECORD_BYTES = 4;

interface Waiting {
  readonly place: EntryPlace;
  readonly bytes: number;
  readonly admitted: () => void;
}

export interface EntryRoomLimits {
  /** Maximum bytes of all sessions together. */
  readonly maxBytes: number;
  readonly sessionMaxBytes: number;
}

/**
 * Bounds the bytes of received entries that are not yet stored, for each session and for all together. Sessions without
 * room wait in order, and their streams are not read during that time. A session that holds nothing may take a batch
 * larger than its own bound.
 */
export class EntryRoom {
  readonly #limits: EntryRoomLimits;
  #heldBytes = 0;
  #waiting: Waiting[] = [];

  constructor(limits: EntryRoomLimits) {
    this.#limits = limits;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Opens the place of one session. */
  open(): EntryPlace {
    return new EntryPlace(this);
  }

  take(place: EntryPlace, bytes: number): Promise<void> {
    return new Promise((admitted) => {
      this.#waiting.push({ place, bytes, admitted });
      this.#admit();
    });
  }

  give(place: EntryPlace, bytes: number): void {
    place.heldBytes -= bytes;
    this.#heldBytes -= bytes;
    this.#admit();
  }

  /** Ends the waits of this place, because its session is over. */
  leave(place: EntryPlace): void {
    for (const waiting of this.#waiting) if (waiting.place === place) waiting.admitted();
    this.#waiting = this.#waiting.filter((waiting) => waiting.place !== place);
    this.give(place, place.heldBytes);
  }

  /**
   * Admits waiting batches in their order. A session at its own limit delays no other session. A session that waits
   * because of the others is never overtaken; otherwise it might wait forever.
   */
  #admit(): void {
    let full = false;
    this.#waiting = this.#waiting.filter(({ place, bytes, admitted }) => {
      if (place.heldBytes > 0 && place.heldBytes + bytes > this.#limits.sessionMaxBytes) return true;
      full ||= this.#heldBytes > 0 && this.#heldBytes + bytes > this.#limits.maxBytes;
      if (full) return true;
      place.heldBytes += bytes;
      this.#heldBytes += bytes;
      admitted();
      return false;
    });
  }
}

/** One session's share of the room. */
export class EntryPlace {
  readonly #room: EntryRoom;
  #left = false;
  heldBytes = 0;

  constructor(room: EntryRoom) {
    this.#room = room;
  }

  /** Resolves when there is room or when the session is over. */
  async take(entries: readonly Entry[]): Promise<void> {
    if (!this.#left) await this.#room.take(this, weightOf(entries));
  }

  give(entries: readonly Entry[]): void {
    if (!this.#left) this.#room.give(this, weightOf(entries));
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#room.leave(this);
  }
}

function weightOf(entries: readonly Entry[]): number {
  return entries.reduce((sum, { body }) => sum + ENTRY_BYTES + contentBytes(body), 0);
}

function contentBytes(body: Entry["body"]): number {
  if (body?.$case === "records")
    return body.value.records.reduce((sum, record) => sum + record.length + RECORD_BYTES, 0);
  return body?.$case === "output" ? body.value.data.length : 0;
}
