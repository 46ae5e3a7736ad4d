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

/** The stored form of a register or a page. */
interface Sealed {
  readonly seal: string;
  /** JSON text. */
  readonly text: string;
}

/** A valid register, or the reason why it is invalid. Neither is present if none is stored. */
export interface StoredRegister {
  /** Revision in the store; 0 when none is stored. */
  readonly revision: number;
  readonly register?: HeadRegister;
  readonly seal?: string;
  readonly fault?: string;
  /** True if the key file lacks the key of its seal. The register may be valid, so nothing may replace it. */
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
 * Stores the heads of a tenant in its KvStore: a register that is rewritten, and pages of older heads that are written
 * once. The register names the seals of its pages. The tenant with the empty name is the installation itself.
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

  /** Heads of the valid pages, and names of the pages that are gone or were changed. */
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

  /** Writes over exactly that revision and returns the written register; `undefined` if another writer was first. */
  async write(tenant: string, revision: number, register: HeadRegister): Promise<Written | undefined> {
    const kv = await this.#kv(tenant);
    const { register: paged, made } = await this.#paged(kv, register);
    const left = paged.pages.filter(({ untilMs }) => !isLongExpired(untilMs, register.timeMs));
    const written = { ...paged, pages: left };
    const sealed = this.#sealed(written);
    const { ok } = await putOnce(kv, { key: REGISTER, value: encodeJson(sealed), ifRevision: revision });
    // A page that no register names does no harm if its deletion fails.
    const gone = ok ? paged.pages.filter((page) => !left.includes(page)) : made;
    await Promise.allSettled(gone.map(({ name }) => kv.delete(PAGES + name)));
    return ok ? { register: written, seal: sealed.seal } : undefined;
  }

  /** Moves the older half to pages if there are many heads. */
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

  /** Id of the missing key of a seal that cannot be checked; `undefined` if it can be checked. */
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

  /** `undefined` when its seal is invalid. */
  #opened<T>(entry: KvEntry): { readonly value: T; readonly seal: string } | undefined {
    try {
      const { seal, text } = decodeStored<Sealed>(entry.value);
      const keyId = keyIdOf(seal);
      if (keyId === undefined || sealOf(text, this.#options.keys, keyId) !== seal) return undefined;
      return { value: JSON.parse(text) as T, seal };
    } catch {
      // The entry may contain anything, because it may have been tampered with.
      return undefined;
    }
  }

  async #kv(tenant: string): Promise<KvStore> {
    const { stores } = this.#options;
    return (await (tenant === "" ? stores.system() : stores.tenant(tenant))).kv;
  }
}

/** The seal; empty if there is none. */
function sealIn(entry: KvEntry): string {
  try {
    return String(decodeStored<Sealed>(entry.value).seal);
  } catch {
    return "";
  }
}

/** Splits heads into pages of at most `AUDIT_HEADS_PAGE_MAX_BYTES`, in their order. */
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
