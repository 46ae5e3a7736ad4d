import { sandboxContract } from "../contract/sandbox.ts";
import { JAVASCRIPT_TECHNIQUES } from "../contract/techniques-javascript.ts";
import { threadScripts } from "../contract/threads.ts";

sandboxContract(await threadScripts("javascript"), "javascript", {
  techniques: JAVASCRIPT_TECHNIQUES,
  works: "OUT = host.add(1, 2)",
});
