import { scriptEngineContract } from "../contract/engine.ts";
import { threadScripts } from "../contract/threads.ts";

const open = await threadScripts("lua");

scriptEngineContract(open, {
  language: "lua",
  echo: "OUT = IN",
  leak: `OUT = leak ~= nil or string.rep == 1 or rawget(string, "rep") == 1 or ("x").rep == 1
    leak = 1 rawset(string, "rep", 1) pcall(function() getmetatable("").__index = {rep = 1} end)`,
  add: "OUT = host.add(IN[1], IN[2])",
  refused: "local a\nhost.refuse()",
  caught: "local _, e = pcall(host.refuse) OUT = e",
  nested: "OUT = host.nested(IN)",
  waiting: "while true do pcall(host.wait) end",
  goesOn: "pcall(host.wait) pcall(host.add, 1, 1) OUT = 'done'",
  pretending: ["error('the time is over')", "error('the time is over', 0)"],
  mistake: "local a = 1\n\nOUT = a + missing",
  unparsable: "local a = 1\nlocal = 2",
  endless: [
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "local t = setmetatable({}, {__index = function() while true do end end}) local x = t.a",
    "local t = setmetatable({}, {__tostring = function() while true do end end}) tostring(t)",
    "local function f() return f() end f()",
  ],
  stuck: "local s = ('a'):rep(1e4) s:find(('a*'):rep(8) .. 'b')",
  greedy: ["local t = {} for i = 1, 1e9 do t[i] = {i} end", "local s = 'xxxxxxxx' while true do s = s .. s end"],
  long: "local t = {} for i = 1, 1000 do t[i] = 'x' end local s = table.concat(t) local n = {} for i = 1, IN / 1000 do n[i] = s end OUT = table.concat(n) .. s:sub(1, IN % 1000)",
  deep: "local o = {} for n = 2, IN do o = {o} end OUT = o",
  many: "OUT = {} for n = 1, IN do OUT[n] = 1 end",
  handing: "local t = {} for n = 1, IN do t[n] = 1 end local ok, e = pcall(host.add, t) if not ok then OUT = e end",
  shouting: "error(('x'):rep(IN))",
  calls: "for n = 1, IN do host.add(1, 1) end",
  asTold: `if IN == "throw" then error("no") elseif IN == "endless" then while true do end
    elseif IN == "greedy" then local s = "xxxxxxxx" while true do s = s .. s end
    elseif IN == "refused" then host.refuse() end
    OUT = IN`,
});
