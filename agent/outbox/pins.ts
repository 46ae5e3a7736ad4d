import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { AppError } from "../../common/errors.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import type { Pin, ToldTime } from "../../proto/gen/agent/v1/agent.ts";
import { readWhole, syncFolder, writeWholly } from "../disk/files.ts";

/**
 * A batch that was pinned and perhaps sent. Until the controllers have stored it, it is sent again with the same
 * entries and the same pin.
 */
export interface PinnedBatch {
  readonly first: number;
  readonly last: number;
  /** Number of entries that were lost just before it. */
  readonly missing: number;
  readonly pin: Pin;
}

interface State {
  readonly stream: string;
  /** The controllers have stored every entry up to this sequence, and perhaps later ones. */
  readonly acknowledged: number;
  /** In microseconds, later than the write times of all pinned batches. */
  readonly nextUs: number;
  readonly told?: ToldTime;
  /** In the order of their entries. */
  readonly batches: readonly PinnedBatch[];
}

export interface OutboxPinsOptions {
  readonly path: string;
  readonly files: Files;
  /** Size of each of the two slots. */
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
 * Stores the pins of the batches that are not acknowledged yet. A pin is on disk before its batch is sent. The file has
 * two slots that are written alternately, so an interrupted write leaves the state before it. Both slots are allocated
 * when the file is created. So a full disk does not stop the sending, which is the only way to free space then. A slot
 * is: serial (u64), length (u32), CRC-32 (u32), JSON.
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

  /**
   * Opens or creates the file, and writes its content again. The previous process may have been killed between a write
   * and its sync.
   */
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

  /** The time in the latest answer of a controller. */
  get told(): ToldTime | undefined {
    return this.#state.told;
  }

  /** The highest sequence that is acknowledged or part of a pinned batch. */
  get knownThrough(): number {
    return Math.max(this.#state.acknowledged, this.#state.batches.at(-1)?.last ?? 0);
  }

  /** The first pinned batch whose last sequence is above `sequence`. */
  after(sequence: number): PinnedBatch | undefined {
    return this.#state.batches.find(({ last }) => last > sequence);
  }

  /**
   * Adds a pinned batch. It is durable when the promise resolves with true. False when it does not fit until other
   * batches are acknowledged. `AppError("too_large")` when it does not fit although no other batch is there.
   */
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

  /** Becomes durable with the next `save` or `add`. */
  acknowledge(sequence: number): void {
    const batches = this.#state.batches.filter(({ last }) => last > sequence);
    this.#state = { ...this.#state, acknowledged: sequence, batches };
  }

  async save(): Promise<void> {
    await this.#change((state) => state);
  }

  /** Drops all pins, because a controller cannot use them. The batches are pinned again with new answers. */
  async forget(): Promise<void> {
    await this.#change((state) => ({ ...state, batches: [] }));
  }

  /** Drops the pin of a batch whose entries are all lost. It becomes durable with the next write. */
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

  /**
   * Writes changes one after another. A change is applied to the state again after its write, so acknowledgements
   * during the write are kept.
   */
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
  // The creation of the file was interrupted, so nothing was sent yet.
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

/** Undefined when the slot was never written, or when its last write was interrupted. */
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
