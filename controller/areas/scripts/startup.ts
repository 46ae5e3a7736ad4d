import { LEVELS } from "../consolelog/index.ts";

const LEVEL_NAMES = Object.fromEntries(LEVELS.map((name, level) => [level, [name, name]]));

/**
 * Scripts that clients run at start-up, by their path below the ospace. A file at that path replaces the built-in
 * script. `getAppNameByUrl` searches the installed applications.
 */
export const STARTUP_SCRIPTS: ReadonlyMap<string, string> = new Map([
  ["/user/signedUser.js", "OUTPUT = webcontext.user();"],
  ["/utils/global.js", `OUTPUT = { register: { consolelog: { level: ${JSON.stringify(LEVEL_NAMES)} } } };`],
  ["/lang/getLangList.js", 'OUTPUT = [{ name: "en", title: "English" }];'],
  [
    "/system/getAppNameByUrl.js",
    `var wanted = typeof input === "string" ? JSON.parse(decodeURIComponent(input || "{}")) : input;
var tools = webcontext.user().Company.ospace + "/portal/tools";
OUTPUT = "";
try {
  var found = odb.mql("SELECT name FROM " + tools + " WHERE url = ? LIMIT 1", String(wanted.url)).data;
  if (found.length > 0) OUTPUT = found[0].name;
} catch (error) {
  if (error.code !== "not_found") throw error;
}`,
  ],
]);
