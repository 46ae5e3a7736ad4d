-- A project has at most its quota of machines; what it uses is kept with the project by those who come and go.
local PROJECT = "/matrix/quota/project"

local function project(name)
  local rows = odb.mql("select name, quota, used from " .. PROJECT .. " where name = ?", name).data
  if #rows == 0 then error("no project " .. tostring(name), 0) end
  return rows[1]
end

local function use(name, delta)
  if delta == 0 then return end
  local of = project(name)
  local used = (of.used or 0) + delta
  if delta > 0 and used > of.quota then
    error(string.format("%s has %d of %d", name, of.used or 0, of.quota), 0)
  end
  odb.mql("update " .. PROJECT .. " set used = ? where name = ?", used, name)
end

if ACTION == "INSERT" then
  use(OBJECT.project, OBJECT.cpus or 0)
elseif ACTION == "DELETE" then
  use(OLD.project, -(OLD.cpus or 0))
elseif OBJECT.project == OLD.project then
  use(OBJECT.project, (OBJECT.cpus or 0) - (OLD.cpus or 0))
else
  use(OBJECT.project, OBJECT.cpus or 0)
  use(OLD.project, -(OLD.cpus or 0))
end
