import { sandboxContract } from "../contract/sandbox.ts";
import { LUA_TECHNIQUES } from "../contract/techniques-lua.ts";
import { threadScripts } from "../contract/threads.ts";

sandboxContract(await threadScripts("lua"), "lua", { techniques: LUA_TECHNIQUES, works: "OUT = host.add(1, 2)" });
