import { join } from "node:path";
import { isAppError } from "../../common/errors.ts";
import { ClusterService, RepairService, RowCheckService, ScrubService } from "../areas/cluster/index.ts";
import {
  ConfigCache,
  ConfigChanges,
  ConfigEntries,
  ConfigHistory,
  ConfigService,
  schemaOwner,
} from "../areas/config/index.ts";
import { ConsoleLogService } from "../areas/consolelog/index.ts";
import { FileSearchService, FileService } from "../areas/files/index.ts";
import { ClassChanges, QueryService, SearchService } from "../areas/query/index.ts";
import { RuleMemory, ruleOwner, RuleService } from "../areas/rules/index.ts";
import { SCRIPT_NAMES } from "../areas/scripts/index.ts";
import { TableService } from "../areas/tables/index.ts";
import { ExportService, ImportService } from "../areas/transfer/index.ts";
import type { Core } from "./core.ts";
import type { Identity } from "./identity.ts";
import { requireScripts } from "./threads.ts";
import type { ShownSetting } from "../settings/shown.ts";

export type Data = ReturnType<typeof data>;

/** Data of users and the ways to it: queries, transfers, rules, configuration and files. */
export function data(from: Core & Identity) {
  const { options, points, runtime, stores, objects, audit, membership, notifications, groups, use, scripts } = from;
  const sortFolder = join(options.dataDir, "sorts");
  const query = new QueryService({
    objects,
    runtime,
    audit,
    sortFolder,
    batches: { stores, controllers: membership, objects, runtime },
  });
  const classes = new ClassChanges({ objects, audit });
  points.begunBatches.fill({ kind: "batches of MQL", goesOn: (...whose) => query.goesOn(...whose) });
  const search = new SearchService({ objects, runtime, audit, sortFolder, engine: () => scripts });
  const exports = new ExportService({ query, objects, runtime });
  const imports = new ImportService({ stores, objects, notifications, runtime, controllers: membership });
  points.begunImports.fill({ kind: "imports", goesOn: (...whose) => imports.goesOn(...whose) });
  const fileSearch = new FileSearchService({
    stores,
    objects,
    runtime,
    controllers: membership,
    workers: from.workers,
  });
  const files = new FileService({
    stores,
    objects,
    runtime,
    controllers: membership,
    keeper: fileSearch,
    room: use,
    everyone: (tenant) => groups.rightsOfEveryone(tenant),
    runNames: SCRIPT_NAMES,
    history: options.fileHistory,
    ospaceOf: from.ospaceOf,
  });
  const consoleLogs = new ConsoleLogService({ objects, clock: runtime.clock });
  return {
    query,
    classes,
    search,
    exports,
    imports,
    files,
    fileSearch,
    consoleLogs,
    ...settings(from),
    ...upkeep(from, options.shownSettings ?? []),
  };
}

/** Configuration, with the tables and rules in it. */
function settings({ points, runtime, secrets, stores, objects, membership, actAs, scripts }: Core) {
  const entries = new ConfigEntries({ stores, runtime });
  const cache = new ConfigCache({ entries, runtime });
  const changes = new ConfigChanges({ entries, stores, runtime, controllers: membership });
  const tables = new TableService({ stores, runtime });
  const rules = new RuleService({
    stores,
    entries,
    objects,
    engine: { run: (call, host) => requireScripts(scripts).run(call, host) },
    neededBy: (principal, rule) => points.policies.offered.needing(principal, rule),
    tables: async (tenant, name) => {
      try {
        return await tables.rows(await actAs(tenant, ""), name);
      } catch (error) {
        if (isAppError(error, "not_found", "invalid")) return undefined;
        throw error;
      }
    },
  });
  points.authoredRules.fill(rules);
  const configuration = { entries, cache, changes, objects, runtime, secrets, owners: [ruleOwner(rules), schemaOwner] };
  const config = new ConfigService(configuration);
  const history = new ConfigHistory(configuration);
  return { cache, changes, tables, rules, ruleMemory: new RuleMemory(runtime.clock), configuration, config, history };
}

/** Checks and repairs of what is stored. */
function upkeep(
  { engine, tenants, runtime, stores, objects, membership, bornMs }: Core,
  shown: readonly ShownSetting[],
) {
  return {
    cluster: new ClusterService({ engine, tenants, clock: runtime.clock, settings: shown }),
    scrubs: new ScrubService({ stores, objects, runtime, controllers: membership, bornMs }),
    repairs: new RepairService({ stores, runtime, bornMs }),
    rowChecks: new RowCheckService({ stores, runtime, controllers: membership }),
  };
}
