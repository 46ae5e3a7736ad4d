import { writeFileSync } from "node:fs";
import { Caller } from "../values/calls.ts";
import { page, PAGE } from "../values/page.ts";
import { allOutcomes } from "../values/table.ts";

/** `npm run values`: writes the page of how values change, by every way in and every way out of a controller. */
await using caller = await Caller.open({ runsScripts: true });
writeFileSync(PAGE, page(await allOutcomes(caller, { isProduct: false })));
