

webshopZ

appweb)#
mainnone2
httpP"TCP:
AbRn1
Running210.0.0.1