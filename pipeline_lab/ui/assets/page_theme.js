// Whether the page is dark, and when that changes: an open page follows its browser without being built again.
const isDark = (element) => getComputedStyle(element).colorScheme === "dark"

function onThemeChange(element, act) {
  let wasDark = isDark(element)
  const look = () => {
    if (!element.isConnected) return watch.disconnect()
    if (isDark(element) === wasDark) return
    wasDark = !wasDark
    act()
  }
  const app = document.querySelector('[data-testid="stApp"]'), watch = new MutationObserver(look)
  if (app) watch.observe(app, { attributes: true, attributeFilter: ["class"] })
}
