import { AUDIT_HEADS_PAGE_MAX_BYTES, AUDIT_HEADS_TOGETHER_MAX } from "../../../common/limits.ts";
import { isAppError } from "../../../common/errors.ts";
import type { Random } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry, KvStore } from "../../store/kv.ts";
import { putOnce } from "../../store/once.ts";
import { keyIdOf, sealOf, type ChainKeys } from "./chain.ts";
import { isLongExpired, type Head, type HeadRegister, type PageName } from "./heads.ts";

const REGISTER = "audit/heads";
const PAGES = "audit/heads/";

/** As it lies in the store. */
interface Sealed {
  readonly seal: string;
  /** JSON. */
  readonly text: string;
}

/** A register that holds, or why it does not; neither when there is none. */
export interface StoredRegister {
  /** The revision in the store; 0 when there is none. */
  readonly revision: number;
  readonly register?: HeadRegister;
  readonly seal?: string;
  readonly fault?: string;
  /** The key file does not have the key of its seal: it may hold, so nothing may take its place. */
  readonly isLocked?: boolean;
}

export interface Written {
  readonly register: HeadRegister;
  readonly seal: string;
}

interface Page {
  readonly tenant: string;
  readonly page: string;
  readonly heads: readonly Head[];
}

export interface HeadStoreOptions {
  readonly stores: Stores;
  readonly keys: ChainKeys;
  readonly random: Random;
}

/**
 * Heads of a tenant lie in its KvStore: a register that is written again and again, and pages of older heads that are
 * written once. The register names the seals of its pages. The tenant with the empty name is the installation itself.
 */
export class HeadStore {
  readonly #options: HeadStoreOptions;

  constructor(options: HeadStoreOptions) {
    this.#options = options;
  }

  async read(tenant: string): Promise<StoredRegister> {
    const kv = await this.#kv(tenant);
    const entry = await kv.get(REGISTER);
    if (entry === undefined) return { revision: 0 };
    const { revision } = entry;
    const keyId = this.#missingKey(entry);
    if (keyId !== undefined)
      return {
        revision,
        isLocked: true,
        fault: `The sealed heads name the key ${keyId}, which the key file does not have.`,
      };
    const opened = this.#opened<HeadRegister>(entry);
    if (opened?.value.tenant !== tenant || typeof opened.value.version !== "number")
      return {
        revision,
        fault: "The sealed heads were changed.",
      };
    return { revision, register: opened.value, seal: opened.seal };
  }

  /** Heads of the pages that hold, and the names of those that are gone or were changed. */
  async readPages(
    tenant: string,
    { pages }: HeadRegister,
  ): Promise<{ readonly heads: readonly Head[]; readonly lost: readonly string[] }> {
    const kv = await this.#kv(tenant);
    const heads: Head[] = [];
    const lost: string[] = [];
    for (const { name, seal } of pages) {
      const entry = await kv.get(PAGES + name);
      const opened = entry && this.#opened<Page>(entry);
      if (opened?.seal === seal) heads.push(...opened.value.heads);
      else lost.push(name);
    }
    return { heads, lost };
  }

  /** Over just that revision; undefined when another write was first. Answers what was written. */
  async write(tenant: string, revision: number, register: HeadRegister): Promise<Written | undefined> {
    const kv = await this.#kv(tenant);
    const { register: paged, made } = await this.#paged(kv, register);
    const left = paged.pages.filter(({ untilMs }) => !isLongExpired(untilMs, register.timeMs));
    const written = { ...paged, pages: left };
    const sealed = this.#sealed(written);
    const { ok } = await putOnce(kv, { key: REGISTER, value: encodeJson(sealed), ifRevision: revision });
    // A page that no register names does no harm when it stays.
    const gone = ok ? paged.pages.filter((page) => !left.includes(page)) : made;
    await Promise.allSettled(gone.map(({ name }) => kv.delete(PAGES + name)));
    return ok ? { register: written, seal: sealed.seal } : undefined;
  }

  /** Moves the older half to pages when there are many heads. */
  async #paged(
    kv: KvStore,
    register: HeadRegister,
  ): Promise<{ readonly register: HeadRegister; readonly made: readonly PageName[] }> {
    if (register.heads.length <= AUDIT_HEADS_TOGETHER_MAX) return { register, made: [] };
    const heads = [...register.heads].sort((one, other) => one.timeMs - other.timeMs);
    const older = heads.splice(0, heads.length - AUDIT_HEADS_TOGETHER_MAX / 2);
    const made: PageName[] = [];
    for (const part of parts(older)) {
      const name = Buffer.from(this.#options.random.bytes(12)).toString("hex");
      const sealed = this.#sealed({ tenant: register.tenant, page: name, heads: part });
      await kv.put(PAGES + name, encodeJson(sealed));
      made.push({ name, seal: sealed.seal, untilMs: part.at(-1)?.timeMs ?? 0 });
    }
    return { register: { ...register, heads, pages: [...register.pages, ...made] }, made };
  }

  #sealed(value: object): Sealed {
    const text = JSON.stringify(value);
    return { seal: sealOf(text, this.#options.keys), text };
  }

  /** Key of a seal that cannot be checked; undefined of one that can. */
  #missingKey(entry: KvEntry): string | undefined {
    const keyId = keyIdOf(sealIn(entry));
    if (keyId === undefined) return undefined;
    try {
      sealOf("{}", this.#options.keys, keyId);
      return undefined;
    } catch (error) {
      if (isAppError(error, "unavailable")) return keyId;
      throw error;
    }
  }

  /** Undefined when its seal does not hold. */
  #opened<T>(entry: KvEntry): { readonly value: T; readonly seal: string } | undefined {
    try {
      const { seal, text } = decodeStored<Sealed>(entry.value);
      const keyId = keyIdOf(seal);
      if (keyId === undefined || sealOf(text, this.#options.keys, keyId) !== seal) return undefined;
      return { value: JSON.parse(text) as T, seal };
    } catch {
      // Anything may have been written in its place.
      return undefined;
    }
  }

  async #kv(tenant: string): Promise<KvStore> {
    const { stores } = this.#options;
    return (await (tenant === "" ? stores.system() : stores.tenant(tenant))).kv;
  }
}

/** Empty when there is none. */
function sealIn(entry: KvEntry): string {
  try {
    return String(decodeStored<Sealed>(entry.value).seal);
  } catch {
    return "";
  }
}

/** In their order, each as large as one entry may be. */
function* parts(heads: readonly Head[]): Generator<readonly Head[]> {
  let [part, bytes]: [Head[], number] = [[], 0];
  for (const head of heads) {
    const size = JSON.stringify(head).length;
    if (part.length > 0 && bytes + size > AUDIT_HEADS_PAGE_MAX_BYTES) {
      yield part;
      [part, bytes] = [[], 0];
    }
    part.push(head);
    bytes += size;
  }
  if (part.length > 0) yield part;
}
