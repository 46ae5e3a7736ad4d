import type { KeyStatus } from "../../../common/api/keys.ts";
import { AppError } from "../../../common/errors.ts";
import { KEY_TENANTS_AT_ONCE } from "../../../common/limits.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import type { KeyRing, KeySource, SealedItem, SealedKind } from "../../secrets/index.ts";
import type { Membership } from "../cluster/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { CompanyService, Tenants } from "../tenants/index.ts";
import type { Resealing } from "./resealing.ts";

export interface KeyDependencies {
  readonly secrets: KeyRing;
  readonly source: Pick<KeySource, "kind"> & { readonly file?: string };
  readonly resealing: Pick<Resealing, "follow" | "soon" | "waiting">;
  readonly kinds: () => readonly SealedKind[];
  readonly controllers: Pick<Membership, "all">;
  readonly tenants: Pick<Tenants, "list">;
  readonly companies: Pick<CompanyService, "list">;
  /** True for the first tenant, whose administrators manage the other tenants. */
  readonly isFirst: (tenant: string) => Promise<boolean>;
}

/** Number of sealed items by key id and kind. */
class Count {
  readonly byKey = new Map<string, Map<string, number>>();
  left = 0;
  ending = 0;

  add(kind: string, { keyIds, sealAnew }: SealedItem, wanted: string): void {
    for (const id of keyIds) {
      const kinds = this.byKey.get(id) ?? new Map<string, number>();
      this.byKey.set(id, kinds.set(kind, (kinds.get(kind) ?? 0) + 1));
    }
    if (keyIds.every((id) => id === wanted)) return;
    if (sealAnew) this.left++;
    else this.ending++;
  }
}

/** The keys of the installation, for administrators of its first tenant. The keys themselves are never returned. */
export class KeyService {
  readonly #with: KeyDependencies;
  #counting: Promise<Count> | undefined;

  constructor(dependencies: KeyDependencies) {
    this.#with = dependencies;
  }

  /** Counts everything that is sealed at present. Concurrent calls share one count. */
  async status(principal: Principal): Promise<KeyStatus> {
    requirePermission(principal, "tenants:write");
    await this.#requireFirst(principal);
    const { secrets, controllers, source, resealing } = this.#with;
    const deletedTenants = await this.#deleted(principal);
    this.#counting ??= this.#count().finally(() => (this.#counting = undefined));
    const { byKey, left, ending } = await this.#counting;
    const { waiting } = resealing;
    return {
      source: source.kind,
      ...(source.file !== undefined && { file: source.file }),
      wanted: secrets.ids[0] ?? secrets.keyId,
      sealing: secrets.keyId,
      keys: [...new Set([...secrets.opening, ...byKey.keys()])].map((id) => this.#shown(id, byKey.get(id))),
      left,
      ending,
      deletedTenants,
      controllers: controllers.all().map(({ id, url, keys }) => ({
        id,
        url,
        ...(keys && { sealing: keys.sealing, opening: [...keys.opening] }),
      })),
      ...(waiting !== undefined && { waiting }),
    };
  }

  /** Reads the keys from their source again, on this controller. */
  async reload(principal: Principal): Promise<void> {
    requirePermission(principal, "tenants:write");
    await this.#requireFirst(principal);
    const { source, resealing } = this.#with;
    if (source.kind === "text")
      throw new AppError(
        "unsupported",
        "The keys are the setting secret_key: change it on every controller, and start them again one after the other.",
      );
    await resealing.follow({ reread: true });
    resealing.soon();
  }

  #shown(id: string, kinds: ReadonlyMap<string, number> = new Map()): KeyStatus["keys"][number] {
    const { secrets } = this.#with;
    return {
      id,
      listed: secrets.ids.includes(id),
      opens: secrets.opening.includes(id),
      sealed: Object.fromEntries(kinds),
      total: [...kinds.values()].reduce((sum, count) => sum + count, 0),
    };
  }

  async #count(): Promise<Count> {
    const { kinds, tenants, secrets } = this.#with;
    const count = new Count();
    const wanted = secrets.ids[0] ?? secrets.keyId;
    const names = (await tenants.list()).map(({ name }) => name);
    for (const { name, all, installation = false } of kinds())
      await mapLimited(installation ? [""] : names, KEY_TENANTS_AT_ONCE, async (tenant) => {
        for await (const item of all(tenant)) count.add(name, item, wanted);
      });
    return count;
  }

  async #deleted(principal: Principal): Promise<string[]> {
    const names: string[] = [];
    for await (const page of this.#with.companies.list(principal, { deleted: true }))
      names.push(...page.map(({ name }) => name));
    return names;
  }

  async #requireFirst({ tenant }: Principal): Promise<void> {
    if (await this.#with.isFirst(tenant)) return;
    throw new AppError("denied", "Only administrators of the first tenant see to the keys.", {
      details: { permission: "tenants:write" },
    });
  }
}
