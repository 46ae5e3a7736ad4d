import { AnchorFile, Anchoring, AuditService, HeadStore, StoredTrail } from "../areas/audit/index.ts";
import { Membership } from "../areas/cluster/index.ts";
import { NotificationHub } from "../areas/notifications/index.ts";
import { ObjectService } from "../areas/objects/index.ts";
import { systemPrincipal } from "../areas/permissions/index.ts";
import { visibleObjects } from "../areas/query/index.ts";
import { quotaOf, TenantGate, TenantService, tenantSizes, TenantUse } from "../areas/tenants/index.ts";
import { nodeFiles } from "../files.ts";
import { HostObjects } from "../scripting/index.ts";
import type { AssemblyOptions } from "./options.ts";
import { openPoints } from "./points.ts";
import { scriptThreads, workerThreads } from "./threads.ts";

export type Ground = Awaited<ReturnType<typeof ground>>;
export type Core = Awaited<ReturnType<typeof core>>;

/** The services that all others need: stores, tenants, controllers, objects and the audit trail. */
export async function core(options: AssemblyOptions) {
  const base = await ground(options);
  const { runtime, secrets, stores, tenants, membership, points, ospaceOf, actAs, isFirst } = base;
  const use = await TenantUse.open({
    stores,
    runtime,
    controllerId: options.controllerId,
    quotaOf: (tenant) => quotaOf(stores.configOf(tenant)),
    sizes: (tenant) => points.sizes.offered.of(tenant),
    audit: (entry) => points.audit.offered.record(entry),
    isFirst,
  });
  const objects = new ObjectService({
    stores,
    runtime,
    room: use,
    controllers: membership,
    triggers: points.triggers.offered,
    visible: visibleObjects,
  });
  points.sizes.fill({ of: (tenant) => tenantSizes({ stores, objects, actAs }, tenant) });
  const anchoring = options.auditAnchorFile
    ? new Anchoring({ runtime, file: new AnchorFile(options.auditAnchorFile, nodeFiles) })
    : undefined;
  const bornMs = async (tenant: string): Promise<number> => (await tenants.get(tenant))?.createdMs ?? 0;
  const audit = new AuditService({
    runtime,
    keys: secrets,
    bornMs,
    ...(anchoring && { anchoring }),
    trail: new StoredTrail({ clock: runtime.clock, stores, objects, ospaceOf }),
    heads: new HeadStore({ stores, keys: secrets, random: runtime.random }),
  });
  points.audit.fill(audit);
  return { ...base, ...threads(base), use, objects, anchoring, bornMs, audit };
}

/** Stores, tenants and controllers, before any data is read. */
async function ground(options: AssemblyOptions) {
  const { engine, runtime, secrets, controllerId } = options;
  const stores = await TenantGate.open({ stores: engine, runtime, controllerId });
  const notifications = new NotificationHub({ log: runtime.log });
  const tenants = new TenantService({ runtime, engine });
  const ospaceOf = (tenant: string): Promise<string> => tenants.ospaceOf(tenant);
  const actAs = async (tenant: string, traceparent: string) =>
    systemPrincipal(tenant, await ospaceOf(tenant), traceparent);
  const membership = await Membership.open({
    kv: (await stores.system()).kv,
    runtime,
    controllerId,
    version: options.version,
    keys: () => ({ opening: secrets.opening, sealing: secrets.keyId }),
  });
  /** True on exactly one controller, which does the work that must be done once. */
  const isFirst = (): boolean => membership.others().every(({ id }) => id > controllerId);
  const points = openPoints();
  return {
    options,
    points,
    engine,
    runtime,
    secrets,
    stores,
    notifications,
    tenants,
    ospaceOf,
    actAs,
    membership,
    isFirst,
  };
}

/** Threads for costly work and for scripts, and the functions that scripts may call. */
function threads({ options, runtime, points: { areas } }: Ground) {
  const declared = areas.parts((area) => area.hostObjects);
  let made: HostObjects | undefined;
  const hostObjects = (): HostObjects => (made ??= new HostObjects(declared()));
  const workers = workerThreads(options, runtime);
  const scripts = scriptThreads(options, { runtime, functions: () => hostObjects().names });
  return { hostObjects, workers, scripts };
}
