import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partsOf } from "../../controller/area.ts";
import { assemble } from "../../controller/assembly.ts";
import { allCommands } from "../../controller/cli/commands/all.ts";
import { manualPage } from "../../controller/cli/reference/manual.ts";
import { referencePage } from "../../controller/cli/reference/page.ts";
import { SETTINGS } from "../../controller/settings/catalogue.ts";
import { openApiDocument } from "../../controller/http/interface/openapi.ts";
import { openSecretKey } from "../../controller/secrets/index.ts";
import { openTestEngine } from "../helpers/engines/engine.ts";
import { realClock } from "../helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../helpers/time/runtime.ts";
import { examplesFile } from "./client/examples.ts";
import type { Document } from "./client/document.ts";
import { typesFile } from "./client/operations.ts";
import { tableFile } from "./client/table.ts";
import { timesFile } from "./client/times.ts";
import { grokPatterns } from "./grok-patterns.ts";
import { mqlFunctions } from "./mql-functions.ts";
import { platformClasses } from "./platform-classes.ts";
import { platformColumns } from "./platform-columns.ts";
import { proofs } from "./proofs.ts";
import { luaLibraries, ruleFunctions } from "./rule-functions.ts";
import packageJson from "../../package.json" with { type: "json" };

const COMMANDS = await allCommands();

/** `npm run gen`: writes all generated files that are committed. CI fails if running it makes a difference. */
execFileSync(join(process.cwd(), "node_modules/.bin/buf"), ["generate"], { cwd: "proto", stdio: "inherit" });
const { openApi, classes, columns } = await assembled();
writeFileSync("deploy/docs/openapi.json", `${JSON.stringify(openApi, undefined, 2)}\n`);
writeFileSync("common/client/gen/operations.ts", typesFile(openApi as Document));
writeFileSync("common/client/gen/table.ts", tableFile(openApi as Document));
writeFileSync("controller/cli/gen/times.ts", timesFile(openApi as Document));
writeFileSync("test/openapi/gen/examples.ts", examplesFile(openApi as Document));
writeFileSync("deploy/docs/platform-classes.md", classes);
writeFileSync("deploy/docs/platform-columns.md", columns);
writeFileSync("deploy/docs/settings.md", settings());
writeFileSync("deploy/docs/mql-functions.md", await mqlFunctions());
writeFileSync("deploy/docs/rule-functions.md", ruleFunctions());
writeFileSync("deploy/docs/lua-libraries.md", luaLibraries());
writeFileSync("deploy/docs/grok-patterns.md", grokPatterns());
writeFileSync("deploy/docs/command-reference.md", referencePage(COMMANDS));
writeFileSync("deploy/docs/odp.1", manualPage(COMMANDS, packageJson.version));
writeFileSync("test/README.md", proofs());

/** Documents that are generated from a whole controller. */
async function assembled(): Promise<{
  readonly openApi: unknown;
  readonly classes: string;
  readonly columns: string;
}> {
  const engine = await openTestEngine();
  const folder = mkdtempSync(join(tmpdir(), "odp-gen-"));
  const secrets = await openSecretKey({ file: join(folder, "secret.key"), create: true });
  const { version } = packageJson;
  const assembly = await assemble({
    engine,
    secrets,
    version,
    runtime: testRuntime(realClock),
    controllerId: "gen",
    publicNames: ["127.0.0.1"],
    dataDir: folder,
    agentPort: () => 0,
  });
  const admin = testPrincipal();
  await assembly.tenants.ensureTenant({ name: admin.tenant, ospace: admin.ospace });
  const views = (await assembly.objects.catalog(admin)).tree("/");
  const classes = platformClasses(views, admin.ospace);
  const owned = partsOf(assembly.areas, (area) => area.classes);
  const columns = platformColumns(views, { ospace: admin.ospace, owned });
  await assembly.close();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
  return { openApi: openApiDocument(assembly.endpoints, { version, sockets: assembly.sockets }), classes, columns };
}

function settings(): string {
  const rows = SETTINGS.map(
    ({ name, meaning, default: otherwise }) =>
      `| \`${name}\` | \`ODP_${name.toUpperCase()}\` | ${meaning} | ${otherwise} |`,
  );
  return [
    "# Settings",
    "",
    "In `odp.toml` (or the file that `ODP_CONFIG` names) and as variables; a variable wins. An unknown or wrong setting is refused by name at the start.",
    "Generated from `controller/settings/catalogue.ts` by `npm run gen`.",
    "",
    "| Setting | Variable | Meaning | Default |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}
