import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { AppError } from "../../common/errors.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import type { Pin, ToldTime } from "../../proto/gen/agent/v1/agent.ts";
import { readWhole, syncFolder, writeWholly } from "../disk/files.ts";

/** A batch that is, or was, on its way. It is sent again whole and with the same pin until it is safe. */
export interface PinnedBatch {
  readonly first: number;
  readonly last: number;
  /** Entries lost before it. */
  readonly missing: number;
  readonly pin: Pin;
}

interface State {
  readonly stream: string;
  /** The controllers have stored every entry up to this sequence, and perhaps later ones. */
  readonly acknowledged: number;
  /** Above the time of every write that was pinned. */
  readonly nextUs: number;
  readonly told?: ToldTime;
  /** In the order of their entries. */
  readonly batches: readonly PinnedBatch[];
}

export interface OutboxPinsOptions {
  readonly path: string;
  readonly files: Files;
  /** Each of the two slots. */
  readonly slotBytes: number;
}

interface Opened {
  readonly file: OpenFile;
  readonly slotBytes: number;
  readonly serial: number;
  readonly state: State;
}

const HEAD_BYTES = 16;
const NOTHING: State = { stream: "", acknowledged: 0, nextUs: 0, batches: [] };

/**
 * Pins of the batches on the way: what they are parsed by, on disk before they are sent. Two slots of a file are
 * written in turn, and have their space from the beginning: a torn write leaves the state before it, and a full disk,
 * on which only sending makes room, does not stop the sending. A slot is serial (u64), length (u32), CRC-32 (u32), JSON.
 */
export class OutboxPins {
  readonly #file: OpenFile;
  readonly #slotBytes: number;
  #serial: number;
  #state: State;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor({ file, slotBytes, serial, state }: Opened) {
    this.#file = file;
    this.#slotBytes = slotBytes;
    this.#serial = serial;
    this.#state = state;
  }

  /** Makes its content durable first: a kill may have come between a write and its sync. */
  static async open(options: OutboxPinsOptions): Promise<OutboxPins> {
    const bytes = await readWhole(options.files, options.path);
    const pins = new OutboxPins(bytes ? await reopen(options, bytes) : await create(options));
    await pins.#change((state) => state);
    return pins;
  }

  get stream(): string {
    return this.#state.stream;
  }

  get acknowledged(): number {
    return this.#state.acknowledged;
  }

  get nextUs(): number {
    return this.#state.nextUs;
  }

  /** The latest time that a controller told. */
  get told(): ToldTime | undefined {
    return this.#state.told;
  }

  /** The last sequence that is known to have been written. */
  get knownThrough(): number {
    return Math.max(this.#state.acknowledged, this.#state.batches.at(-1)?.last ?? 0);
  }

  /** The first batch that ends beyond `sequence`. */
  after(sequence: number): PinnedBatch | undefined {
    return this.#state.batches.find(({ last }) => last > sequence);
  }

  /** Durable when it resolves with true. False: there is no room until some that are on the way are acknowledged. */
  async add(batch: PinnedBatch, nextUs: number): Promise<boolean> {
    const added = await this.#change((state) => ({
      ...state,
      nextUs,
      told: batch.pin.told ?? state.told,
      batches: [...state.batches, batch],
    }));
    if (!added && this.#state.batches.length === 0)
      throw new AppError("too_large", "What a batch is parsed by does not fit into the outbox.");
    return added;
  }

  /** Not durable until `save`, or the next that is added. */
  acknowledge(sequence: number): void {
    const batches = this.#state.batches.filter(({ last }) => last > sequence);
    this.#state = { ...this.#state, acknowledged: sequence, batches };
  }

  async save(): Promise<void> {
    await this.#change((state) => state);
  }

  /** Drops pins that cannot be used; the controllers are asked again. */
  async forget(): Promise<void> {
    await this.#change((state) => ({ ...state, batches: [] }));
  }

  /** Nothing of it is left on the disk. */
  leaveOut(batch: PinnedBatch): void {
    this.#state = { ...this.#state, batches: this.#state.batches.filter((one) => one !== batch) };
  }

  async begin(stream: string, acknowledged: number): Promise<void> {
    await this.#change((state) => ({ ...state, stream, acknowledged, batches: [] }));
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }

  /** One after the other. What is acknowledged meanwhile stays so. */
  #change(change: (state: State) => State): Promise<boolean> {
    const changing = this.#writing.then(() => this.#write(change));
    this.#writing = changing.catch(() => undefined);
    return changing;
  }

  async #write(change: (state: State) => State): Promise<boolean> {
    const serial = this.#serial + 1;
    const bytes = encodeSlot(serial, change(this.#state));
    if (bytes.length > this.#slotBytes) return false;
    await writeWholly(this.#file, bytes, (serial % 2) * this.#slotBytes);
    await this.#file.datasync();
    this.#serial = serial;
    this.#state = change(this.#state);
    return true;
  }
}

async function create({ path, files, slotBytes }: OutboxPinsOptions): Promise<Opened> {
  const file = await files.open(path, "w+", 0o600);
  await writeWholly(file, Buffer.alloc(2 * slotBytes), 0);
  await file.datasync();
  await syncFolder(files, dirname(path));
  return { file, slotBytes, serial: 0, state: NOTHING };
}

async function reopen(options: OutboxPinsOptions, bytes: Buffer): Promise<Opened> {
  const slotBytes = bytes.length >> 1;
  const slots = [0, slotBytes].flatMap((at) => decodeSlot(bytes.subarray(at, at + slotBytes)) ?? []);
  const latest = slots.toSorted((a, b) => b.serial - a.serial)[0];
  // Its creation was cut off: nothing was sent yet.
  if (!latest) return create(options);
  return { file: await options.files.open(options.path, "r+"), slotBytes, ...latest };
}

function encodeSlot(serial: number, state: State): Buffer {
  const payload = Buffer.from(JSON.stringify(state));
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeBigUInt64LE(BigInt(serial), 0);
  head.writeUInt32LE(payload.length, 8);
  const crc = crc32(payload, crc32(head.subarray(0, 12)));
  head.writeUInt32LE(crc, 12);
  return Buffer.concat([head, payload]);
}

/** Undefined when it was never written, or its writing was cut off. */
function decodeSlot(bytes: Buffer): { readonly serial: number; readonly state: State } | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const end = HEAD_BYTES + bytes.readUInt32LE(8);
  if (end > bytes.length) return undefined;
  const payload = bytes.subarray(HEAD_BYTES, end);
  if (crc32(payload, crc32(bytes.subarray(0, 12))) !== bytes.readUInt32LE(12)) return undefined;
  const state: unknown = JSON.parse(payload.toString());
  return isState(state) ? { serial: Number(bytes.readBigUInt64LE(0)), state } : undefined;
}

function isState(value: unknown): value is State {
  return typeof value === "object" && value !== null && "batches" in value && Array.isArray(value.batches);
}
