import { expect, test } from "vitest";
import { entry, openAudit } from "../../../test/helpers/areas/audit-entries.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { auditRoutes } from "./routes.ts";

test("a verification that is streamed ends with the report of one that is not", async () => {
  const { audit, trail } = openAudit();
  for (let at = 0; at < 3; at++) await audit.write(entry());
  trail.pageEntries = 1;
  await using http = await openTestHttp({ endpoints: auditRoutes(audit) });
  const session = await http.signIn("admin");
  const asked = async (url: string) => (await http.app.inject({ url: `${url}sessionid=${session}` })).body;
  const lines = (await asked("/audit/verify?stream=true&")).trim().split("\n");
  const report = expect.objectContaining({ entries: 3, problems: [] }) as unknown;
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([{ report }]);
  expect(JSON.parse(await asked("/audit/verify?"))).toMatchObject({ message: report });
});
