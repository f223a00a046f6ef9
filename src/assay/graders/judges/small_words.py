"""Small words of big languages: articles, prepositions, conjunctions, pronouns, auxiliaries.

They stand in every text of a language, so that a quote of nothing else is no evidence. Words that
may decide ("not", "no", "yes", "never") are none of them.
"""

# ruff: noqa: RUF001 - words of other scripts

from __future__ import annotations

import re

# A paragraph each for English, Spanish, Portuguese, French, German, Italian, Dutch, Polish, the
# Scandinavian languages, Turkish, Indonesian and Malay, Vietnamese, Russian with its neighbours,
# Greek, Arabic and Persian, Hebrew, Hindi, Bengali.
_SPACED = """\
a about an and are as at be been being but by did do does for from had has have he her here him
his how i if in into is it its me my of on or our shall she so such than that the their them then
there these they this those through to us very was we were what when where which while who whom
whose why with would you your

a al algo ante antes aquel así aunque cada como con cual cuando de del desde donde durante e el
ella ellas ellos en entre era eran eres es esa esas ese eso esos esta estas este esto estos está
están fue ha han hasta hay la las le les lo los me mi mis muy más ni nos o os otra otro para pero
por porque pues que quien qué se ser si sobre son su sus sí también tan te tiene todo tu tus u un
una unas uno unos y ya yo él

a ao aos as assim até com como da das de dela dele do dos e ela elas ele eles em entre era essa
esse esta este está estão eu foi há isso isto já lhe mais mas me mesmo meu minha muito na nas no
nos num numa nós o os ou para pela pelas pelo pelos por porque quando que quem se ser seu seus
sobre sua suas são também te tem um uma à às é

a ai au aussi autre aux avec c ce ceci cela celle celui ces cet cette comme d dans de des donc
dont du elle elles en entre est et eu eux fut il ils j je l la le les leur leurs lui là m ma mais
me mes mon même n nos notre nous on ont ou où par pour qu quand que qui s sa sans se ses si son
sont sur ta te tes toi ton tout tu un une vos votre vous y à ça été être

aber als also am an auch auf aus bei bin bis da damit das dass daß dein dem den denn der des die
dies diese dieser dieses doch dort du durch ein eine einem einen einer eines er es für ganz haben
hat hatte hier ich ihm ihn ihr ihre im in ist ja jede jeder man mehr mein mit nach noch nur ob
oder ohne schon sehr sein seine sich sie sind so um und uns unter von vor war waren was weil wenn
wer werden wie wir wird wo zu zum zur über

a ad ai al alla alle allo anche c che chi ci come con cui d da dai dal dalla dalle degli dei del
della delle dello di e ed era fra gli ha hanno i il in io l la le lei li lo loro lui ma mi mia mio
nei nel nella nelle noi o per perché più quando quella quello questa questo qui se si sia sono su
sua sue sul sulla suo tra tu tutto un una uno vi voi è

aan al als bij daar dan dat de deze die dit door een en er had heb heeft hem het hier hij hoe hun
ik in is je kan maar me meer men met mij mijn na naar nog nu of om onder ons ook op over te tot u
uit van veel voor was wat we wel werd wie wij worden wordt ze zich zij zijn zo zou

a aby ale bo być był była było co czy dla do gdy go i ich im ja jak jako je jego jej jest już ku
lub ma mi mnie na nad o od on ona one oni oraz po pod przez przy się są ta tak także tam te tego
tej ten to tu tych tylko tym u w we więc z za ze że

af att av blev blir da de dem den der deres det dette där då efter eller en er et ett for fra från
för før ha han hans har havde her hon hun hur hvad hvor här i jag jeg kan man med men mig min mot
när når och og om op os over på samt sig sin ska skal som så til till ud under upp ut vad var ved
vi vid vil är å

ama ben bir biz bu da daha de diye en gibi göre hem her ile ise için kadar ki mi mu mü mı o olan
olarak onlar onu sen siz sonra ve veya ya çok şu

ada adalah agar akan atas atau bagi dalam dan dari dengan di dia ia ini itu juga kami karena ke
kepada kita mereka oleh pada para sampai saya sebagai secara seperti telah untuk yang

bởi cho các có cũng của do là lại mà một như những này rằng sẽ thì trong trên tại từ và vì với
đang đã đó được để ở

а без более бы был была были было быть в вам вас во вона вони вот все всё вы від він где ги да для
до его ее если есть ещё её же з за зі и из или им их й к как ко когда которая который кто ли между
меня мне мы на над нам нас него но о об один он она они оно от по под при про с са се со със та
так также там то того тоже только том ты у уже це че чем что чтобы ще що эта эти это этот я як є і

ένα ένας από αυτό για είναι η και με μια να ο οι που σε στη στην στο στον τα τη την της το τον του
των ως ότι

آن أن أو إلى إن از است التي الذي الى ان او این با برای بعد به بود بين تا ثم حتى در ذلك را شد على
عن عند في فيه قد كان كانت كل كما لم له ما مع من منه منها هذا هذه هم هو هي و يا که یا

אבל או אך אל אם אני אשר את גם הוא היא היה הם זאת זה יש כי כל כמו כן מה מי מן על עם של

इस उस एक एवं और का की के को जो तो था थी थे ने पर भी में यह या ये वह वे से है हैं हो

আর এই একটি এবং এর ও করে জন্য তার থেকে যে সে হয়
"""
_LANGUAGES = tuple(frozenset(words.split()) for words in _SPACED.casefold().split("\n\n"))
# Chinese, and Japanese: words of these stand side by side.
_UNSPACED = re.compile(
    "(?:[的了是在和也就之与與及或而且以于於对對为為被把这這那其它他她们們个個等]"
    "|から|まで|です|でし|ます|まし|した|して|する|この|その|あの|これ|それ|あれ|こと|もの"
    "|ため|よう|など|という|として|について|[はがをにでともへのやかねよた])+"
)


_WORD = re.compile("[\\w\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd]+")


def are_small(text: str) -> bool:
    """Whether the words of a text, as casefold writes it, are all small ones of one language."""
    words = _WORD.findall(text)
    if not words:
        return False
    if any(language.issuperset(words) for language in _LANGUAGES):
        return True
    return all(map(_UNSPACED.fullmatch, words))
